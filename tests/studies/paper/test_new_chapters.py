"""Measurements of the chapters beyond fits: what they measure on known cases, and what they refuse."""

import numpy as np
import pytest

from draws import covering
from rannpde.errors import InputError
from rannpde.network.features import RandomFeatures
from rannpde.network.laws import HeavyTailed
from rannpde.network.network import Network
from rannpde.studies.cell import PathsCell
from rannpde.studies.known_values import ControlValue, ReactionValue
from rannpde.studies.paper import literal, unknowns
from rannpde.studies.run.cell import result_from, result_text, run_cell
from rannpde.studies.run.fit import FitResult
from rannpde.studies.run.generalisation import SampleError
from rannpde.studies.run.measured import MeasuredResult
from rannpde.studies.run.nested import PooledLosses, nested_networks
from rannpde.studies.run.operator_laws import OPERATOR_LAWS, OperatorLaw, SquareSource, on_the_variety
from rannpde.studies.run.paths import PathsResult
from rannpde.studies.run.pinn import PinnLoss
from rannpde.studies.run.records import Record
from rannpde.studies.run.sobolev import SobolevRate
from rannpde.studies.run.spectral import BANDS, WAVES, BandErrors, PlaneWaves
from rannpde.studies.show.analysis import collect
from rannpde.studies.target import GaussianBump, NavierStokes, PorousMedium
from rannpde.studies.true_solutions import PeriodicSolution, SmoothBarenblatt, WaveSolution
from rannpde.theory.corollaries import paired_network
from rannpde.theory.losses import boundary_loss, initial_loss, navier_stokes_losses
from rannpde.theory.unbiased import estimator


@pytest.mark.parametrize(
    "solution", [SmoothBarenblatt(1), SmoothBarenblatt(2), WaveSolution(), WaveSolution(1.0, 1.4, 0.5)]
)
def test_true_solutions_solve_their_equations_and_their_targets_agree(solution):
    points = solution.domain.sample(60, rng=0)
    assert np.abs(solution.system.residuals(solution.exact, points)).max() < 1e-10
    values = solution.values(points).reshape(60, -1)
    for column, target in enumerate(solution.functions):
        assert np.abs(target(points) - values[:, column]).max() < 1e-6


def test_the_minimiser_of_the_loss_has_the_least_loss_and_widths_help():
    losses = {}
    for kind in ("ridge", "sobolev", "minimised"):
        result = run_cell(PinnLoss("s", "c", SmoothBarenblatt(1), 0, (20, 60), kind, 2))
        assert isinstance(result, MeasuredResult)
        losses[kind] = np.square(np.median(result.error, axis=1))
        total = losses[kind] + [
            np.median(row) for row in np.add(result.quantities["initial"], result.quantities["boundary"])
        ]
        assert total[1] < 0.1 * total[0]
    assert (losses["minimised"] < losses["ridge"]).all()
    assert losses["minimised"][1] < 1e-5


def test_a_flow_of_two_fields_is_minimised_too():
    result = run_cell(PinnLoss("s", "c", WaveSolution(), 0, (40,), "minimised", 1))
    assert result.last_error < 1e-2


def test_networks_of_a_pool_are_those_of_its_first_neurons():
    """One evaluation of the widest gives every width; the losses are those of the networks one by one."""
    solution = WaveSolution()
    law = HeavyTailed(0.75, 0.75)
    pool = [estimator(u, law, order=9).network(40, rng=k) for k, u in enumerate(solution.functions)]
    points = solution.domain.sample(30, rng=0)
    found = nested_networks(pool, (10, 25, 40), points, [(0, 0), (1, 0), (0, 2)])
    for width, table in zip((10, 25, 40), found, strict=True):
        for field, one in enumerate(pool):
            layer = one.features
            alone = RandomFeatures(layer.weights[:, :width], layer.biases[:width], "tanh", np.zeros(2), np.ones(2))
            network = Network(alone, one.coefficients[:width] * 40 / width)
            for index, values in table.table.items():
                np.testing.assert_allclose(values[:, field], network.derivative(points, index), rtol=1e-10, atol=1e-9)
    whole = paired_network(*pool)
    measured = PooledLosses(solution).of(pool, (40,))[0]
    assert measured["initial"] == pytest.approx(initial_loss(whole, solution.exact, solution.domain), rel=1e-2)
    assert measured["boundary"] == pytest.approx(boundary_loss(whole, solution.exact, solution.domain), rel=1e-2)
    parts = [float(part) for part in navier_stokes_losses(whole, solution.domain)]
    assert [measured["equation 1"], measured["equation 2"]] == pytest.approx(parts, rel=1e-2)
    assert measured["error"] ** 2 == pytest.approx(sum(parts), rel=1e-2)


@pytest.mark.parametrize("wave_number", [0.0, 3.0, 12.5])
def test_features_on_the_variety_satisfy_the_equation(wave_number):
    """So that a law which knows the operator needs boundary values alone, and is the most accurate of the four."""
    problem, rng = SquareSource(wave_number), np.random.default_rng(5)
    columns, points = on_the_variety(problem, 4 * rng.standard_normal((2, 9))), rng.random((20, 2))
    laplacian = columns(points, (2, 0)) + columns(points, (0, 2))
    assert np.abs(laplacian + wave_number**2 * columns(points, (0, 0))).max() < 1e-11 * (1 + np.abs(laplacian).max())
    errors = {
        law: float(np.median(run_cell(OperatorLaw("s", "c", problem, 0, (64,), law, 2)).error)) for law in OPERATOR_LAWS
    }
    assert errors["trefftz"] < 0.1 * min(error for law, error in errors.items() if law != "trefftz")
    for bad in (-1.0, float("nan"), "k"):
        with pytest.raises(InputError, match="wave_number"):
            SquareSource(bad)


@pytest.mark.parametrize(("kind", "d"), covering([ControlValue, ReactionValue], [1, 4, 30]))
def test_values_along_paths_are_the_known_ones(kind, d):
    result = run_cell(PathsCell("s", "c", kind(d), 3, 16, 4, 600, 1024))
    assert isinstance(result, PathsResult)
    assert result.error < max(3 * result.halfwidth, 1e-3)
    assert result.error * abs(kind(d).reference) < 0.03  # 1,024 paths: 1/√1024, as the data vary by about 1


def test_the_explicit_solution_solves_its_equation():
    """u_t + Δu/2 = 0 for the wave, so that u = v leaves no reaction; by differences of step h, to h²."""
    target, h = ReactionValue(3), 1e-3
    points = np.random.default_rng(2).random((10, 4))

    def shifted(axis, step):
        return target.values(points + step * np.eye(4)[axis])

    first = (shifted(0, h) - shifted(0, -h)) / (2 * h)
    second = sum((shifted(k, h) - 2 * target.values(points) + shifted(k, -h)) / h**2 for k in (1, 2, 3))
    assert np.abs(first + 0.5 * second).max() < 1e-6
    assert target.values(np.zeros((1, 4)))[0] == target.reference == 1.6


@pytest.mark.slow  # beside the corollaries on true solutions in tests/theory
def test_unbiased_losses_lie_below_their_bounds():
    result = run_cell(PinnLoss("s", "c", SmoothBarenblatt(1), 0, (32, 64), "unbiased", 2))
    assert isinstance(result, MeasuredResult)
    found = result.quantities
    for losses, low, high in zip(found["error"], found["from_variance"], found["corrected"], strict=True):
        assert low[0] < high[0]
        assert max(losses) ** 2 < high[0]
    for name in ("initial", "boundary"):
        assert np.max(found[name]) < np.min(found[f"{name}_bound"])


def test_fitted_derivatives_help_in_the_norm_that_holds_them():
    errors = {}
    for kind in ("values", "derivatives"):
        result = run_cell(SobolevRate("s", "c", SmoothBarenblatt(1), 0, (16, 48), kind, 1, 2))
        assert isinstance(result, MeasuredResult)
        errors[kind] = np.median(result.error, axis=1)
        assert errors[kind][1] < errors[kind][0]
    assert errors["derivatives"][1] < errors["values"][1]


def test_noise_is_averaged_away():
    """With noise the error falls like M^(-1/2) at a fixed width: by 4 from 256 to 4096 samples, within a factor of
    2."""
    result = run_cell(SampleError("s", "c", GaussianBump(1), 0, (256, 4096), 0.5, "fixed", 16, draws=4))
    assert isinstance(result, MeasuredResult)
    first, last = (float(np.mean(row)) for row in result.error)
    assert 2 < first / last < 8
    cell = SampleError("s", "c", GaussianBump(1), 0, (100,), 0.0, "root-log")
    assert cell.neurons(100) == 47
    with pytest.raises(InputError, match="noise"):
        SampleError("s", "c", GaussianBump(1), 0, (100,), -1.0)


def test_octaves_hold_their_share_of_the_energy():
    """Nothing fitted leaves an error of 1 in every octave; high octaves need high frequencies."""
    axis = np.arange(96) / 96
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    assert np.mean(PlaneWaves().values(grid) ** 2) == pytest.approx(0.5 * BANDS * WAVES)
    low = run_cell(BandErrors("s", "c", PlaneWaves(), 0, (128,), "gaussian", 5.0, draws=1))
    assert isinstance(low, MeasuredResult)
    bands = [low.quantities[f"band {k}"][0][0] for k in range(BANDS)]
    assert bands[0] < 0.2
    assert bands[-1] > 0.9
    total = np.sqrt(np.mean(np.square(bands)))
    assert low.error[0][0] == pytest.approx(total, rel=0.2)  # what lies outside all octaves is small


def test_literal_modes_change_what_they_say():
    points = NavierStokes().uniform(4000, np.random.default_rng(1))
    exact = literal.MODES["corrected"].values(points)
    table, velocity = (literal.MODES[name].values(points) for name in ("table of 5,000 points", "v = -s u"))
    assert 1e-8 < np.abs(table - exact).max() < 1e-2
    assert np.array_equal(velocity[:, 0], exact[:, 0])
    speed = NavierStokes().wave.speed
    assert np.allclose(velocity[:, 1], -exact[:, 0] / speed)
    # v_t - u_x = 0 holds with u' = -s v' and not with u' = -v'/s, unless s = 1
    assert np.abs(np.ptp(velocity[:, 1]) * speed**2 / np.ptp(exact[:, 1]) - 1) < 1e-9
    for bad in (-1, 1, 10**9, 2.5):
        with pytest.raises(InputError, match="table_points"):
            NavierStokes(table_points=bad)


def test_the_settings_that_show_the_rate_are_named():
    """Invented errors: one setting of d = 4 is resolved and falls like N^(-1/2), the others have the error 1."""
    study = unknowns.chapter("default").study
    records = {}
    for cell in study.cells:
        error = (cell.width**-0.5 if cell.curve == "d = 4, T = 0.1" else 1.0) * (1 + 0.01 * cell.seed)
        found = FitResult(error, {"u": error}, error, 1e-5, 10.0, "dense", cell.points, 9, 0.1, 0.2, error)
        records[cell.key] = Record(found, {}, "")
    four, five = unknowns.chapter("default").remarks(collect(study, records))
    assert four.startswith("d = 4: settings whose slope covers -1/2: T = 0.1; 7 of 8")
    assert five.startswith("d = 5: settings whose slope covers -1/2: none; 8 of 8")


def test_the_centre_of_the_profile_can_be_moved():
    corner = PorousMedium(2, centre=0.0)
    assert corner.exact.centre == (0.0, 0.0)
    with pytest.raises(InputError, match="inside"):
        PorousMedium(2, centre=0.0, inside=0.5)
    with pytest.raises(InputError, match="centre"):
        PorousMedium(2, centre="middle")


def test_measurements_are_read_as_they_were_written_and_refused_when_they_are_none():
    result = MeasuredResult({"error": ((1.0, 2.0), (0.5, 0.25))}, 0.1)
    assert result_from(result_text(result)) == result
    for bad in ({}, {"other": ((1.0,),)}, {"error": ((float("nan"),),)}, {"error": ((-1.0,),)}):
        with pytest.raises(InputError):
            MeasuredResult(bad, 0.1)
    with pytest.raises(InputError, match="true solution"):
        PinnLoss("s", "c", GaussianBump(1), 0, (10,))


def test_the_computed_flow_is_kept_between_cells():
    assert PeriodicSolution().exact is PeriodicSolution().exact
