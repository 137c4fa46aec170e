"""PINN losses of four networks on one true solution: computed, fitted, fitted with derivatives, and trained on the
loss.

The loss that is trained is J_PDE + J_ic + J_bc with integrals in place of means; Gauss–Newton on the output weights
of a
frozen hidden layer needs the equations' exact linearisation and one linear least-squares problem an iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import lstsq

from rannpde.arrays import Array, MultiIndex
from rannpde.errors import choose, positive_integer, require
from rannpde.fitting.fit import fit
from rannpde.fitting.sobolev import sobolev_samples
from rannpde.network.features import RandomFeatures
from rannpde.network.laws import Gaussian, HeavyTailed
from rannpde.network.network import Network
from rannpde.studies.cell import MeasurementCell
from rannpde.studies.run.nested import PooledLosses
from rannpde.studies.true_solutions import TrueSolution
from rannpde.theory.bounds import theorem_bound
from rannpde.theory.corollaries import (
    ResidualBound,
    continuity_corollary,
    navier_stokes_corollary,
    paired_network,
    porous_medium_corollary,
)
from rannpde.theory.losses import boundary_loss, initial_loss, loss_integral
from rannpde.theory.table import order_of_finite_bound
from rannpde.theory.traces import boundary_trace, initial_trace
from rannpde.theory.unbiased import Estimator, estimator

PINN_KINDS = ("unbiased", "ridge", "sobolev", "minimised")
_SCALE = 1.5
"""Standard deviation of the fitted networks' weights on [-1, 1]: the solutions vary over about their domain."""
_POINTS_PER_NEURON = 10
"""M = 10 N inside, as in the paper's experiments; N at the first time and N on every wall."""
PENALTY = 1e-14
"""Ridge parameter λ of the fits, which are solved by orthogonal factors: the width must limit them, not λ."""
_CUTOFF = 1e-13
"""Relative singular values of Gauss–Newton's linear problems that are kept: rounding with some room."""
ITERATIONS = 12
"""Gauss–Newton converges quadratically here: 5 to 8 are needed from a constant."""
SETTLED = 1e-10
"""Relative change of the loss at which Gauss–Newton ends."""
VARIANCE_ACCURACY: dict[str, Any] = {"tolerance": 0.1, "budget": 2**11, "rng": 0}
"""Accuracy of the exact variance: beside bounds that are orders of magnitude above it a digit is enough."""
DELTA = 0.1
"""δ of the corollaries' bounds and of the quantiles beside them."""


@dataclass(frozen=True)
class PinnLoss(MeasurementCell):
    """√J_PDE of networks of one kind at all widths, for several draws of the hidden layer, and what bounds it.

    kind : "unbiased" (Theorem 1, law π, tanh), "ridge", "sobolev" (H^1_t H^2_x) or "minimised"
    """

    relative: ClassVar[bool] = False
    kind: str = "ridge"
    draws: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        choose("kind", self.kind, dict.fromkeys(PINN_KINDS))
        positive_integer("draws", self.draws)
        require(isinstance(self.target, TrueSolution), "target", self.target, "a true solution")

    @property
    def cost(self) -> float:
        """Fitted to times measured: quadratures for unbiased networks, factorisations for the others."""
        widest, fields = max(self.networks), len(self.target.fields)
        if self.kind == "unbiased":
            return 2e10 + 2e6 * self.draws * widest * fields
        size = 10.0 if self.kind == "minimised" else 1.0
        return 2e9 + size * self.draws * 300 * (fields * widest) ** 3

    @property
    def quantities(self) -> tuple[str, ...]:
        """√J_PDE, the losses of the equations (J¹, J² of a flow), J_ic and J_bc."""
        return ("error", *(f"equation {k}" for k in range(1, len(self.target.fields) + 1)), "initial", "boundary")

    @property
    def solution(self) -> TrueSolution:
        """The target, which was checked."""
        assert isinstance(self.target, TrueSolution)
        return self.target

    def measure(self) -> dict[str, list[list[float]]]:
        if self.kind == "unbiased":
            return _unbiased(self)
        rows: dict[str, list[list[float]]] = {name: [] for name in self.quantities}
        for width in self.networks:
            losses = [_losses(_trained(self, width, draw), self.solution) for draw in range(self.draws)]
            for name in rows:
                rows[name].append([one[name] for one in losses])
        return rows


def _losses(network: Network, solution: TrueSolution) -> dict[str, float]:
    """√J_PDE over all equations, J_ic and J_bc."""
    system, domain, exact = solution.system, solution.domain, solution.exact

    def density(points: Array) -> Array:
        return np.square(system.residuals(network, points))

    losses = np.ravel(loss_integral(density, domain).value)
    return {
        "error": float(losses.sum()) ** 0.5,
        **{f"equation {k}": float(loss) for k, loss in enumerate(losses, 1)},
        "initial": initial_loss(network, exact, domain),
        "boundary": boundary_loss(network, exact, domain),
    }


# ------------------------------------------------------------------------------------------------------ Theorem 1


def _unbiased(cell: PinnLoss) -> dict[str, list[list[float]]]:
    """Networks of all widths from one pool of neurons a draw; bounds for the last draw of each width."""
    solution, widest = cell.solution, max(cell.networks)
    law = HeavyTailed(0.75, 0.5 * solution.space_dim + 0.25)
    # the least order of ψ for which the bound is finite, too, and not the variance alone
    orders = {
        "time_order": 1,
        "space_order": 2,
        "order": order_of_finite_bound("tanh", law, 1 + solution.space_dim, 1, 2),
    }
    choices = [estimator(u, law, activation="tanh", **orders) for u in solution.functions]
    variance = sum(float(choice.variance(solution.domain, **VARIANCE_ACCURACY)) for choice in choices)
    theorem = sum(theorem_bound(choice, solution.domain).corrected for choice in choices)
    pools = [
        [choice.network(widest, rng=np.random.default_rng([cell.seed, draw, k])) for k, choice in enumerate(choices)]
        for draw in range(cell.draws)
    ]
    measured = PooledLosses(solution)
    by_pool = [measured.of(pool, cell.networks) for pool in pools]
    rows = {name: [[one[k][name] for one in by_pool] for k in range(len(cell.networks))] for name in cell.quantities}
    for name in ("from_variance", "corrected", "printed", "initial_bound", "boundary_bound", "mass_bound"):
        rows[name] = []
    for k, width in enumerate(cell.networks):
        network, last = _joined([_narrowed(one, width) for one in pools[-1]]), by_pool[-1][k]
        losses = last["error"] ** 2, last["difference"]
        bound = _corollary(choices, network, solution, {"variance": variance, "theorem": theorem, "losses": losses})
        for name in ("from_variance", "corrected", "printed"):
            rows[name].append([getattr(bound, name)])
        if len(choices) == 2:  # the bound of J¹ alone
            first = last["equation 1"], last["difference 1"]
            known: dict[str, Any] = {"variance": variance, "theorem": theorem, "losses": first}
            mass = continuity_corollary(choices[0], choices[1], network, solution.domain, DELTA, **known)
            rows["mass_bound"].append([mass.corrected])
        scale = width * DELTA
        rows["initial_bound"].append([initial_trace(solution.domain) * theorem / scale])
        rows["boundary_bound"].append([boundary_trace(solution.domain) * theorem / scale])
    return {name: values for name, values in rows.items() if values}


def _narrowed(network: Network, width: int) -> Network:
    """The network of the first neurons of a wider one: again unbiased."""
    wide = network.features
    assert isinstance(wide, RandomFeatures)
    features = RandomFeatures(
        wide.weights[:, :width], wide.biases[:width], wide.activation, wide.centre, wide.halfwidth, wide.constant
    )
    return Network(features, network.coefficients[:width] * (len(network.coefficients) / width))


def _joined(networks: list[Network]) -> Network:
    return networks[0] if len(networks) == 1 else paired_network(*networks)


def _corollary(
    choices: list[Estimator], network: Network, solution: TrueSolution, known: dict[str, Any]
) -> ResidualBound:
    if len(choices) == 1:
        return porous_medium_corollary(choices[0], network, solution.domain, DELTA, **known)
    gas = getattr(solution, "gas")  # noqa: B009  (flows have it)
    density, velocity = choices
    return navier_stokes_corollary(
        density,
        velocity,
        network,
        solution.domain,
        DELTA,
        viscosity=gas.viscosity,
        gamma=gas.gamma,
        alpha=gas.alpha,
        **known,
    )


# ------------------------------------------------------------------------------------------------- fits and training


def _trained(cell: PinnLoss, width: int, draw: int) -> Network:
    """The network of the cell's kind: all kinds share hidden layers and points."""
    solution = cell.solution
    domain = solution.domain
    rng = np.random.default_rng([cell.seed, draw, width, solution.space_dim])
    features = RandomFeatures.sample(width=width, law=Gaussian(_SCALE), rng=rng, domain=domain, constant=True)
    points = domain.sample(_POINTS_PER_NEURON * width, rng=rng)
    if cell.kind == "ridge":
        return fit(features, points, solution.values(points), penalty=PENALTY, method="orthogonal")
    if cell.kind == "sobolev":
        values, derivatives = sobolev_samples(solution.exact, points, time_order=1, space_order=2)
        if values.shape[1] == 1:
            values, derivatives = values[:, 0], {index: one[:, 0] for index, one in derivatives.items()}
        return fit(features, points, values, derivatives=derivatives, penalty=PENALTY, method="orthogonal")
    return minimised(features, solution, points, rng)


def minimised(features: RandomFeatures, solution: TrueSolution, points: Array, rng: np.random.Generator) -> Network:
    """The minimiser of J_PDE + J_ic + J_bc over the output weights, by Gauss–Newton from the mean initial values."""
    domain, fields = solution.domain, len(solution.fields)
    few = max(features.width, 16)
    rims = [(region, region.sample(few, rng=rng)) for region in (domain.initial, *domain.sides.values())]
    inner = _Interior(features, solution, points)
    fixed = [np.sqrt(region.measure / few) * features(z) for region, z in rims]
    goals = [np.sqrt(region.measure / few) * solution.values(z).reshape(few, fields) for region, z in rims]
    walls, wanted = np.concatenate(fixed), np.concatenate(goals)
    weights = np.zeros((features.columns, fields))
    weights[-1] = solution.values(rims[0][1]).reshape(few, fields).mean(axis=0)
    best = np.inf
    for _ in range(ITERATIONS):
        residual, jacobian = inner.linearised(weights)
        rest = (walls @ weights - wanted).T.ravel()
        loss = float(residual @ residual + rest @ rest)
        if not loss < best * (1 - SETTLED):
            break
        best, best_weights = loss, weights
        rows = np.concatenate([jacobian, np.kron(np.eye(fields), walls)])
        norms = np.linalg.norm(rows, axis=0)
        step = lstsq(rows / norms, np.concatenate([residual, rest]), cond=_CUTOFF, lapack_driver="gelsy")[0] / norms
        weights = weights - step.reshape(fields, -1).T
    return Network(
        features,
        best_weights[:, 0] if fields == 1 else best_weights,
        {"kind": "minimiser of the PINN loss", "loss": best},
    )


class _Interior:
    """Residuals at fixed points and their derivatives by the output weights, of all fields one after the other."""

    def __init__(self, features: RandomFeatures, solution: TrueSolution, points: Array) -> None:
        self._system, self._points = solution.system, points
        self._scale = float(np.sqrt(solution.domain.measure / len(points)))
        indices: Sequence[MultiIndex] = sorted({jet.index for e in self._system.expressions for jet in e.jets})
        self._designs = {index: features(points, index) for index in indices}

    def linearised(self, weights: Array) -> tuple[Array, Array]:
        """Residuals (M · equations,) and Jacobian (M · equations, columns · fields)."""
        words, (columns, fields) = self._system.vocabulary, weights.shape
        known = dict(zip(words.symbols, self._points.T, strict=True))
        values, blocks = [], []
        for expression in self._system.expressions:
            jets = {
                jet: self._designs[jet.index] @ weights[:, words.fields.index(jet.field)] for jet in expression.jets
            }
            value, partials = expression.linearised(known, jets)
            block = np.zeros((len(self._points), columns * fields))
            for jet, partial in zip(expression.jets, partials, strict=True):
                first = columns * words.fields.index(jet.field)
                slope = np.broadcast_to(partial, len(self._points))[:, None]
                block[:, first : first + columns] += slope * self._designs[jet.index]
            values.append(self._scale * np.broadcast_to(value, len(self._points)))
            blocks.append(self._scale * block)
        return np.concatenate(values), np.concatenate(blocks)
