"""Periodic problems: features cos and sin of integer frequencies, all of them up to a highest one, by fast transforms.

They are an orthogonal basis already, so that nothing is drawn and nothing compressed. The state holds the complex
Fourier coefficients of every component for |k| ≤ K; products are formed on a grid of at least 3K + 1 points per axis,
which makes the projection of quadratic terms exact. The Jacobian of the Newton iteration is that of the frozen mean
coefficients, one small matrix per mode; what it leaves out, the iteration carries.

Modes are added on the way, whenever the highest quarter of them is more than a small share of the solution: a function
keeps its coefficients exactly when zeros are appended, so that the change of basis costs nothing. A second pass, with
more modes and a tighter tolerance, gives the error estimate and the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import sympy
from scipy import fft

from rannpde.arrays import Array, MultiIndex, combinations
from rannpde.pde.lines.march import Evolved, Stretch
from rannpde.pde.lines.passes import Grown, Setting, first_scales
from rannpde.pde.problem.data import space_fields
from rannpde.pde.problem.evolution import Component, Evolution
from rannpde.pde.statement.expression import Jet


@dataclass(frozen=True, eq=False)
class ModeBlocks:
    """A Jacobian that does not mix modes: blocks (modes, c, c) for c components; states are (c · modes,)."""

    blocks: Array

    def shifted(self, shift: complex) -> Callable[[Array], Array]:
        modes, count, _ = self.blocks.shape
        if count == 1:
            inverse = 1.0 / (shift - self.blocks[:, 0, 0])
            return lambda right: inverse * right
        inverses = np.linalg.inv(shift * np.eye(count) - self.blocks)
        return lambda right: np.einsum("mij,jm->im", inverses, right.reshape(count, modes)).ravel()


def _periodic_grid(bounds: tuple[tuple[float, float], ...], count: int) -> Array:
    """(count^d, d): equidistant points, the last end of every axis left out."""
    return combinations(lower + (upper - lower) * np.arange(count) / count for lower, upper in bounds)


@dataclass(frozen=True)
class Modes:
    """The Fourier modes |k_l| ≤ highest on a periodic box, in the layout of ``rfftn``, half of the last axis.

    bounds (d, 2) as a tuple of pairs
    """

    bounds: tuple[tuple[float, float], ...]
    highest: int

    @property
    def dim(self) -> int:
        return len(self.bounds)

    @cached_property
    def grid_size(self) -> int:
        """Points of the grid along every axis: 3K + 1 at least, a size that transforms fast."""
        return int(fft.next_fast_len(3 * self.highest + 1, real=True))

    @cached_property
    def numbers(self) -> Array:
        """(modes, d): the integer wave numbers kept."""
        axis = fft.fftfreq(self.grid_size, 1.0 / self.grid_size).round().astype(int)
        axes = [axis] * (self.dim - 1) + [np.arange(self.grid_size // 2 + 1)]
        return combinations(axes)[self._places]

    @cached_property
    def _places(self) -> Array:
        axis = np.abs(fft.fftfreq(self.grid_size, 1.0 / self.grid_size)).round() <= self.highest
        axes = [axis] * (self.dim - 1) + [np.arange(self.grid_size // 2 + 1) <= self.highest]
        return np.flatnonzero(combinations(axes).all(axis=1))

    @cached_property
    def frequencies(self) -> Array:
        """(modes, d): 2π k / length."""
        return 2 * np.pi * self.numbers / np.diff(np.array(self.bounds), axis=1)[:, 0]

    @cached_property
    def points(self) -> Array:
        """(grid points, d)."""
        return _periodic_grid(self.bounds, self.grid_size)

    @cached_property
    def multiplicity(self) -> Array:
        """(modes,): 2 for a mode that stands for its conjugate as well."""
        return np.where(self.numbers[:, -1] > 0, 2.0, 1.0)

    def factor(self, index: tuple[int, ...]) -> Array:
        """(modes,): Π (i k)^α, what a derivative does to the coefficients."""
        return np.prod((1j * self.frequencies) ** np.array(index), axis=1)

    def to_grid(self, coefficients: Array) -> Array:
        """Real values (s, grid points) of coefficients (s, modes)."""
        shape = (self.grid_size,) * self.dim
        full = np.zeros(
            (len(coefficients), self.grid_size ** (self.dim - 1) * (self.grid_size // 2 + 1)), dtype=complex
        )
        full[:, self._places] = coefficients
        spectrum = full.reshape(len(coefficients), *shape[:-1], self.grid_size // 2 + 1)
        axes = tuple(range(1, self.dim + 1))
        return fft.irfftn(spectrum, shape, axes=axes, norm="forward").reshape(len(coefficients), -1)

    def to_modes(self, values: Array) -> Array:
        """Coefficients (s, modes) of real values (s, grid points)."""
        shape = (self.grid_size,) * self.dim
        axes = tuple(range(1, self.dim + 1))
        return fft.rfftn(values.reshape(len(values), *shape), axes=axes, norm="forward").reshape(len(values), -1)[
            :, self._places
        ]

    def at(self, points: Array, index: tuple[int, ...]) -> Array:
        """(M, modes) complex: derivative of e^(ik(x - lower)) · multiplicity; real parts of sums are the function."""
        phase = (points - np.array(self.bounds)[:, 0]) @ self.frequencies.T
        return np.exp(1j * phase) * (self.multiplicity * self.factor(index))

    def embed(self, coefficients: Array, larger: Modes) -> Array:
        """The same function in more modes: coefficients (modes,) → (larger modes,)."""
        table = {tuple(k): place for place, k in enumerate(larger.numbers.tolist())}
        places = [table[tuple(k)] for k in self.numbers.tolist()]
        result = np.zeros(len(larger.numbers), dtype=complex)
        result[places] = coefficients
        return result


@dataclass(frozen=True, eq=False)
class Spectral:
    """An evolution projected on Fourier modes; a ``Dynamics`` with complex state (components · modes,)."""

    evolution: Evolution
    modes: Modes
    scales: Mapping[Component, float]

    @property
    def count(self) -> int:
        return len(self.modes.numbers)

    columns = rank = held = count

    @property
    def nodes(self) -> Array:
        return self.modes.points

    def initial_state(self) -> Array:
        """Coefficients at the first time: of the interpolant on a grid eight times finer, cut at K."""
        fine = Modes(self.modes.bounds, self.modes.highest * (8 if self.modes.dim == 1 else 2))
        place = {tuple(k): n for n, k in enumerate(fine.numbers.tolist())}
        rows = [place[tuple(k)] for k in self.modes.numbers.tolist()]
        parts = [
            fine.to_modes(self.evolution.initial_values(c, fine.points)[None])[0, rows]
            for c in self.evolution.components
        ]
        return np.concatenate(parts)

    def size(self, change: Array) -> float:
        """Largest change of a component, root mean square over space, relative to its scale."""
        parts = change.reshape(-1, self.count)
        sizes = [self._norm(part) / self.scales[c] for c, part in zip(self.evolution.components, parts, strict=True)]
        return float(max(sizes))

    def _norm(self, part: Array) -> float:
        return float(np.sqrt(self.modes.multiplicity @ (part.real**2 + part.imag**2)))

    def tail(self, state: Array) -> float:
        """Share of the highest quarter of the modes in the size of the solution: what K leaves out is below it."""
        high = np.abs(self.modes.numbers).max(axis=1) > 0.75 * self.modes.highest
        return self.size(np.where(np.tile(high, len(self.evolution.components)), state, 0.0))

    def rates(self, times: Array, states: Array) -> Array:
        """Rates of change (c · modes, s) at s times."""
        known = self._known(times, states)
        parts = [part.formula for rate in self.evolution.rates.values() for part in rate.parts]
        values = iter(self.evolution.values(parts, known))
        blocks = states.reshape(-1, self.count, len(times))
        result = np.empty_like(blocks)
        for k, component in enumerate(self.evolution.components):
            if self.evolution.above(component) is not None:
                result[k] = blocks[k + 1]
                continue
            rate = self.evolution.rates[component.field]
            total = self._modes_of(next(values), len(times))
            for axis in rate.flux:
                total = total - self._slopes[axis] * self._modes_of(next(values), len(times))
            result[k] = total.T
        return result.reshape(states.shape)

    @cached_property
    def _slopes(self) -> list[Array]:
        return [1j * frequency for frequency in self.modes.frequencies.T]

    @cached_property
    def _factors(self) -> dict[tuple[int, ...], Array]:
        return {jet.index[1:]: self.modes.factor(jet.index[1:]) for jet in self.evolution.jets}

    def _modes_of(self, values: Array, count: int) -> Array:
        return self.modes.to_modes(np.broadcast_to(values, (count, len(self.modes.points))))

    def _known(self, times: Array, states: Array) -> dict[sympy.Symbol, Array]:
        blocks = dict(zip(self.evolution.components, states.reshape(-1, self.count, len(times)), strict=True))
        jets: dict[Jet, Array] = {}
        for jet in self.evolution.jets:
            coefficients = blocks[Component.of(jet)].T
            jets[jet] = self.modes.to_grid(coefficients * self._factors[jet.index[1:]])
        known = self.evolution.known(times[:, None], self.modes.points.T[None])
        return known | {symbol: jets[jet] for symbol, jet in self.evolution.symbols.items()}

    def jacobian(self, time: float, state: Array) -> ModeBlocks:
        """∂f/∂y with every coefficient replaced by its mean over space: (modes, c, c)."""
        known = self._known(np.array([time]), state[:, None])
        components = self.evolution.components
        blocks = np.zeros((self.count, len(components), len(components)), dtype=complex)
        for row, component in enumerate(components):
            if self.evolution.above(component) is not None:
                blocks[:, row, row + 1] = 1.0
                continue
            rate = self.evolution.rates[component.field]
            factors = [np.ones(1), *(-self._slopes[axis] for axis in rate.flux)]
            for part, outer in zip(rate.parts, factors, strict=True):
                slopes = self.evolution.values(part.partials, known)
                means = [np.mean(np.where(np.isfinite(v), v, 0.0)) for v in slopes]  # a root has no slope at 0
                for jet, mean in zip(part.jets, means, strict=True):
                    column = components.index(Component.of(jet))
                    blocks[:, row, column] += outer * mean * self._factors[jet.index[1:]]
        return ModeBlocks(blocks)

    def fastest_growth(self, time: float, state: Array) -> float:
        """Largest real part of an eigenvalue of the frozen-mean Jacobian."""
        return float(np.linalg.eigvals(self.jacobian(time, state).blocks).real.max())

    def at(
        self, component: Component, times: Array, states: Array, points: Array, index: MultiIndex, order: int
    ) -> Array:
        """(M,): a space derivative of a component from states (n, M); there are no boundary data."""
        block = states.reshape(-1, self.count, len(times))[self.evolution.components.index(component)]
        return np.einsum("mk,km->m", self.modes.at(points, index), block).real


# ------------------------------------------------------------------------------------------------------- one pass

FINE_MODES = {1: 2**14, 2: 2**9, 3: 2**6}
"""Modes per axis of the grid on which the data of a problem are looked at."""


MOST_PASSES = 4
"""Each has more modes than the one before: what four do not settle is no matter of modes."""


class FourierModes:
    """Passes with as many Fourier modes as the solution needs at every time."""

    def __init__(self, evolution: Evolution, setting: Setting, rng: np.random.Generator | None = None) -> None:
        """Nothing is drawn: ``rng`` is there for the other kinds' sake."""
        self.evolution, self.setting = evolution, setting
        self.tolerances = tuple(setting.tol / setting.tuning.mode_tighter**k for k in range(MOST_PASSES))
        self.bounds = tuple((float(lower), float(upper)) for lower, upper in evolution.domain.space.bounds)
        self.scales: Mapping[Component, float] = first_scales(evolution)
        self.grown: Grown | None = None
        self.most = setting.tuning.most_modes[len(self.bounds) - 1]
        self.highest = min(self._of_data(), int(self.most / setting.tuning.mode_step))

    def run(self, number: int, tol: float) -> Evolved:
        """The march over the whole time, in stretches of constant modes."""
        tuning = self.setting.tuning
        most = int(self.most / (1.0 if number > 1 else tuning.mode_step))  # the second pass must be the finer one
        start, end = self.evolution.domain.time
        system = Spectral(self.evolution, Modes(self.bounds, self.highest), self.scales)
        state, first_step = system.initial_state(), None
        stretches: list[Stretch] = []
        while True:
            room = system.modes.highest < most

            def too_fine(state: Array, system: Spectral = system, room: bool = room) -> bool:
                return room and system.tail(state) > tuning.tail_share * tol

            march = self.setting.march(tol, number, system, self.grown)
            path = march.run(system, (start, end), state, stop=too_fine, first_step=first_step)
            if path.steps or not stretches:
                stretches.append(Stretch(system, path))
            if path.ending is not None or path.end >= end:
                return Evolved(self.evolution, tuple(stretches))
            larger = Modes(self.bounds, min(int(np.ceil(tuning.mode_growth * system.modes.highest)), most))
            parts = path.last.reshape(-1, system.count)
            state = np.concatenate([system.modes.embed(part, larger) for part in parts])
            start, first_step = path.end, path.end - path.times[-2]
            system = Spectral(self.evolution, larger, self.scales)

    def learn(self, solution: Evolved, failed: bool) -> bool:
        """More modes for the next pass; False where there cannot be more."""
        last = solution.stretches[-1].system
        assert isinstance(last, Spectral)
        self.scales, self.grown = _scales(solution), Grown.of(solution, self.setting.tuning)
        self.highest = min(int(np.ceil(self.setting.tuning.mode_step * last.modes.highest)), self.most)
        return not (failed and last.modes.highest >= self.most)

    def _of_data(self) -> int:
        """The highest mode that initial values, sources and coefficients hold, at least the first of the tuning."""
        dim, tuning = len(self.bounds), self.setting.tuning
        fine = FINE_MODES[dim]
        numbers = np.abs(fft.fftfreq(fine, 1.0 / fine)).round().astype(int)
        order = combinations([numbers] * dim).max(axis=1)
        highest = tuning.first_modes[dim - 1]
        for values in space_fields(self.evolution, _periodic_grid(self.bounds, fine)):
            power = np.abs(fft.fftn(values.reshape((fine,) * dim)).ravel()) ** 2
            by_order = np.bincount(order, weights=power, minlength=fine // 2 + 1)
            if by_order[1:].sum() == 0:
                continue
            above = np.sqrt(np.append(np.cumsum(by_order[::-1])[::-1][1:], 0.0) / by_order.sum())
            # the highest quarter of the modes is to hold less than its share: so much room above the data
            resolved = int(np.argmax(above <= max(tuning.tail_share * self.setting.tol, 1e-14)))
            highest = max(highest, int(np.ceil(resolved / 0.75)))
        return highest


def _scales(solution: Evolved) -> dict[Component, float]:
    """Sizes of the components (root mean square over space), the largest at the ends and middles of all steps."""
    found: dict[Component, float] = {}
    for stretch in solution.stretches:
        system, ends = stretch.system, np.array(stretch.path.times)
        assert isinstance(system, Spectral)
        states = stretch.path(np.append(ends, 0.5 * (ends[1:] + ends[:-1])))
        blocks = states.reshape(-1, system.count, states.shape[1])
        for component, block in zip(system.evolution.components, blocks, strict=True):
            size = float(np.sqrt((system.modes.multiplicity @ np.abs(block) ** 2).max()))
            found[component] = max(found.get(component, 0.0), size)
    return {component: size or 1.0 for component, size in found.items()}
