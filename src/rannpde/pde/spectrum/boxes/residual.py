"""Residuals of modes on a box, by which spurious modes are refused and errors bounded."""

from __future__ import annotations

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.spectrum.boxes.form import BoxSystem
from rannpde.pde.spectrum.boxes.function import ProductFunction


def box_residuals(system: BoxSystem, functions: list[ProductFunction], values: Array) -> tuple[Array, Array | None]:
    """Residuals of modes on a finer grid: over the sizes of their terms, and in the norm of the mass matrix.

    The second is None where the eigenvalue is no factor of a positive weight times the field of each equation.
    """
    form = system.form
    nodes, weights = system.grid(max(system.degrees))
    share = weights[0]
    for own in weights[1:]:
        share = np.multiply.outer(share, own)
    relative, squares, norms = np.zeros(len(values)), np.zeros(len(values)), np.zeros(len(values))
    weighted = True
    wave = np.pi / float(np.ptp(form.bounds, axis=1).max())
    for f, (field, one) in enumerate(zip(form.fields, form.equations, strict=True)):
        coefficients = system.coefficients(one, nodes)
        masses = [(jet, own[1]) for jet, own in coefficients.items() if 1 in own]
        plain = len(masses) == 1 and masses[0][0].field == field and masses[0][0].order == 0
        weight = np.real(masses[0][1]) if plain else np.zeros(share.shape)
        weighted &= plain and bool((weight > 0).all() or (weight < 0).all()) and form.pencil.degree == 1
        for k, (function, value) in enumerate(zip(functions, values, strict=True)):
            total: Array = np.zeros(share.shape, dtype=complex)
            size: Array = np.zeros(share.shape)
            least = 0.0
            tables = {jet.index: function.on_grid(nodes, jet.index) for jet in coefficients}
            for jet, powers in coefficients.items():
                g = form.fields.index(jet.field)
                still = np.abs(function.on_grid(nodes, (0,) * form.dim)[..., g]) if jet.order == 0 else None
                for power, factor in powers.items():
                    term = factor * value**power * tables[jet.index][..., g]
                    total, size = total + term, size + np.abs(term)
                    if still is not None and power:
                        plainly = np.abs(factor) * form.scale**power * still * wave**jet.order
                        least = max(least, float(np.sqrt((share * plainly**2).sum())))
            norm = max(float(np.sqrt((share * size**2).sum())), least)
            left = float((share * np.abs(total) ** 2).sum())
            relative[k] = max(relative[k], np.sqrt(left) / max(norm, 1e-300))
            if plain and weighted:
                squares[k] += float((share * np.abs(total) ** 2 / np.abs(weight)).sum())
                here = np.abs(function.on_grid(nodes, (0,) * form.dim)[..., f]) ** 2
                norms[k] += float((share * np.abs(weight) * here).sum())
    return relative, np.sqrt(squares / np.maximum(norms, 1e-300)) if weighted else None
