"""Measured or computed values as functions of the coordinates, for sources and condition values of a problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.interpolate import CloughTocher2DInterpolator, LinearNDInterpolator, NdBSpline, make_interp_spline
from scipy.spatial import cKDTree

from rannpde.arrays import Array, MultiIndex
from rannpde.errors import InputError, finite_array, finite_points, reject, require
from rannpde.io import PathLike, read_csv

SPLINE_ORDERS = (1, 3, 5)
"""Degrees of splines whose knots are those of the grid."""


@dataclass(frozen=True, eq=False)
class GridData:
    """Values on a grid as a function of coordinates, by splines of a stated order: ``functions={"f": GridData(…)}``.

    values : (k_1, …, k_m); axes : name of a coordinate → its values (k,), increasing, in the order of those of values
    order : 1, 3 or 5, the degree of the splines; beyond the grid the nearest point of it is taken

    In equations it is written without arguments: ``-laplace(u) = f``.

    >>> x = np.linspace(0, 1, 30)
    >>> f = GridData(np.exp(x), {"x": x}, order=5)
    >>> bool(abs(f(np.array([0.123]))[0] - np.exp(0.123)) < 1e-9)
    True
    """

    values: Array
    axes: Mapping[str, Array]
    order: int = 3
    _spline: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        require(self.order in SPLINE_ORDERS, "order", self.order, f"one of {', '.join(map(str, SPLINE_ORDERS))}")
        require(isinstance(self.axes, Mapping) and bool(self.axes), "axes", self.axes, "a mapping of names to values")
        values = finite_array("values", self.values, len(self.axes))
        axes = {name: finite_array(f"axes[{name!r}]", one, 1) for name, one in self.axes.items()}
        wanted = tuple(len(one) for one in axes.values())
        require(values.shape == wanted, "values with shape", values.shape, f"of shape {wanted}, as the axes say")
        for name, one in axes.items():
            require(bool((np.diff(one) > 0).all()), f"axes[{name!r}]", one, "increasing")
            require(len(one) > self.order, f"axes[{name!r}]", f"of {len(one)} values", f"of {self.order + 1} or more")
        spline = _tensor_spline(list(axes.values()), values, self.order)
        for name, one in {"values": values, "axes": axes, "_spline": spline}.items():
            object.__setattr__(self, name, one)

    @property
    def of(self) -> tuple[str, ...]:
        """Names of the coordinates that it depends on."""
        return tuple(self.axes)

    @classmethod
    def from_xarray(cls, data: Any, order: int = 3) -> GridData:
        """Data from an xarray.DataArray, whose dimensions have the names of the coordinates of the problem."""
        if not hasattr(data, "dims") or not hasattr(data, "coords"):
            reject("data", type(data).__name__, "an xarray.DataArray")
        return cls(np.asarray(data.values), {str(name): np.asarray(data.coords[name]) for name in data.dims}, order)

    def __call__(self, *coordinates: Array) -> Array:
        return self.derivative((0,) * len(self.axes), *coordinates)

    def derivative(self, orders: MultiIndex, *coordinates: Array) -> Array:
        """A partial derivative of the splines at coordinate arrays of one shape."""
        parts = [np.clip(one, a[0], a[-1]) for one, a in zip(coordinates, self.axes.values(), strict=True)]
        together = np.broadcast_arrays(*parts)
        if max(orders) >= self.order:
            raise InputError(f"splines of order {self.order} have no derivative of order {max(orders)}; raise order")
        rows = np.stack([one.ravel() for one in together], axis=1)
        values = self._spline(rows, nu=tuple(orders))
        return np.asarray(values, dtype=float).reshape(together[0].shape)


@dataclass(frozen=True, eq=False)
class ScatteredData:
    """Values at scattered points as a function of coordinates: ``functions={"f": ScatteredData(…)}``.

    points : (M, m); values : (M,); of : names of the m coordinates
    order : 1, linear on triangles or simplices; 3, cubic, in one or two coordinates. Outside of the points the value of
        the nearest one is taken

    >>> f = ScatteredData([[0.0], [2.0], [1.0]], [0.0, 4.0, 1.0], of="x")
    >>> f(np.array([0.5, 3.0])).tolist()
    [0.5, 4.0]
    """

    points: Array
    values: Array
    of: tuple[str, ...]
    order: int = 1
    _inside: Any = field(init=False, repr=False)
    _nearest: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        of = (self.of,) if isinstance(self.of, str) else tuple(self.of)
        points = finite_points("points", self.points, len(of))
        values = finite_array("values", self.values, 1)
        require(len(values) == len(points), "values with shape", values.shape, f"of shape ({len(points)},)")
        require(len(points) > len(of) + 1, "points", f"{len(points)} points", f"{len(of) + 2} or more")
        allowed = (1, 3) if len(of) <= 2 else (1,)
        require(self.order in allowed, "order", self.order, f"one of {', '.join(map(str, allowed))} here")
        object.__setattr__(self, "of", of)
        object.__setattr__(self, "_inside", _interpolator(points, values, self.order))
        object.__setattr__(self, "_nearest", cKDTree(points))
        object.__setattr__(self, "values", values)

    @classmethod
    def from_csv(cls, path: PathLike, of: Sequence[str], order: int = 1) -> ScatteredData:
        """Data from a file of comma-separated values: the coordinates of a point, then the value there."""
        rows = read_csv(path)
        require(rows.shape[1] == len(of) + 1, f"columns of {path}", rows.shape[1], f"{len(of)} coordinates and a value")
        return cls(rows[:, :-1], rows[:, -1], tuple(of), order)

    def __call__(self, *coordinates: Array) -> Array:
        together = np.broadcast_arrays(*coordinates)
        rows = np.stack([one.ravel() for one in together], axis=1)
        values = np.asarray(self._inside(rows), dtype=float).ravel()
        outside = ~np.isfinite(values)
        if outside.any():
            values[outside] = self.values[self._nearest.query(rows[outside])[1]]
        return values.reshape(together[0].shape)


def _tensor_spline(axes: list[Array], values: Array, order: int) -> NdBSpline:
    """The product of splines through all values, one coordinate after the other."""
    knots = []
    for axis, positions in enumerate(axes):
        spline = make_interp_spline(positions, values, k=order, axis=axis)
        knots.append(spline.t)
        values = np.moveaxis(spline.c, 0, axis)
    return NdBSpline(tuple(knots), values, order)


def _interpolator(points: Array, values: Array, order: int) -> Any:
    if points.shape[1] > 1:
        return (LinearNDInterpolator if order == 1 else CloughTocher2DInterpolator)(points, values)
    rank = np.argsort(points[:, 0])
    positions = points[rank, 0]
    require(bool((np.diff(positions) > 0).all()), "points", "with one point twice", "different from each other")
    spline = make_interp_spline(positions, values[rank], k=order)
    return lambda rows: np.where((rows[:, 0] < positions[0]) | (rows[:, 0] > positions[-1]), np.nan, spline(rows[:, 0]))
