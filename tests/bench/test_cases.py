"""The cases: stated in a few lines, with small files of reference solutions finer than the goals."""

import inspect
import warnings
from pathlib import Path

import numpy as np
import pytest

import rannpde as rp
from benchmarks.harness.case import judged, relative_error
from benchmarks.harness.coefficients import DATA, blocks, random_field, random_field_values, read_numbers
from benchmarks.harness.reference_solution import LARGEST, read_reference
from benchmarks.pinnacle import burgers, poisson, waves
from benchmarks.pinnacle.table import CASES, ORDER
from benchmarks.references import compute
from draws import some
from rannpde.errors import FileError
from rannpde.pde.functions import ExactSolution
from rannpde.pde.problem.checks import ConditionWarning
from rannpde.pde.residual import term_residual

TABLES = Path(__file__).parents[2] / "benchmarks" / "references"
STATED = list(CASES.values())
COMPUTED = [case for case in STATED if case.reference]
LEFT = {"poisson-2d-ms": "a residual is left at the corners of blocks"}
"""Small versions that reach their error without being called converged, and why."""
COARSE = {
    "burgers-2d": "fronts of width 0.002 on a square of 4",
    "ns-2d-lt": "a layer of ν/u at the outlet, in time",
    "poisson-3d-cg": "1.01e-5 for 1e-5: elements of order 10 in space",
    "wave-2d-cg": "a kink travels for ever: only algebraic convergence",
}
"""Reference solutions that are less than two orders finer than the goal, and why; the page tells each accuracy."""


def stated(case, small=False):
    """The problem; starts of the benchmark that do not agree with the sides are its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConditionWarning)
        return case.problem(small)


def test_every_case_of_the_table_is_there():
    assert tuple(CASES) == ORDER
    assert len(CASES) == 22


@pytest.mark.parametrize("case", STATED, ids=lambda case: case.name)
def test_a_statement_has_fifteen_lines_at_most(case):
    lines = inspect.getsource(case.statement).splitlines()
    assert len(lines) - 2 <= 15  # beside its name and its docstring


@pytest.mark.parametrize("case", STATED, ids=lambda case: case.name)
def test_a_case_is_stated_and_knows_its_reference(case):
    problem = stated(case)
    reference = case.judged_at(problem)
    if not case.function:
        assert problem.domain.contains(reference.points).all()
        assert reference.points.shape == (len(reference.points), problem.domain.dim)
    assert reference.values.shape[1] == (case.fields or len(problem.fields))
    assert len(reference.points) >= 1000
    if case.times:
        assert set(np.round(reference.points[:, 0], 9)) == set(np.round(case.times, 9))
    small = case.judged_at(stated(case, small=True), small=True)
    assert len(small.points) >= 50


REFERENCES = [(case, case.reference, case.goal) for case in COMPUTED]
REFERENCES += [(case, case.small_reference, case.small_tol) for case in COMPUTED if case.small_reference]


@pytest.mark.parametrize(("case", "name", "goal"), REFERENCES, ids=[name for _, name, _ in REFERENCES])
def test_a_reference_is_small_and_has_its_table(case, name, goal):
    assert (DATA / f"{name}.npz").stat().st_size <= LARGEST
    lines = (TABLES / f"{name}.txt").read_text("utf-8").splitlines()
    assert lines[0].startswith(case.title)
    table = lines[4 : lines.index("", 4)]
    distances = [float(line.split()[-2]) for line in table[1:]]
    accuracy, why = compute.known_to(distances)
    assert read_reference(name).accuracy == pytest.approx(accuracy, rel=0.02)  # the table has three digits
    assert lines[-1].startswith("The finest is known to ")
    assert lines[-1].endswith(f"{why}.")
    assert (accuracy <= 0.01 * goal) == (name not in COARSE)


def test_what_is_left_is_summed_only_where_distances_fall_steadily():
    """Errors C rⁿ: the rule finds that of the finest grid; a lucky last step or a slow one does not make it hope."""
    errors = 3e-2 * 0.2 ** np.arange(5)
    assert compute.known_to(errors[:-1] - errors[1:])[0] == pytest.approx(errors[-1])
    assert compute.known_to([1e-2, 1e-3, 1e-9])[0] == pytest.approx(1e-9 / 9)
    assert compute.known_to([1e-2, 4e-3, 1e-4])[0] == pytest.approx(1e-4 * 0.4 / 0.6)
    assert compute.known_to([1e-2, 7e-3])[0] == 7e-3
    assert compute.known_to([1e-2])[0] == 1e-2


def test_a_reference_that_is_missing_is_named():
    with pytest.raises(FileError, match=r"no-such-case\.npz does not exist"):
        read_reference("no-such-case")


SLOW = ("heat-2d-vc", "heat-inverse", "ns-2d-lt", "poisson-2d-ms", "poisson-inverse")
"""Small versions that take longest; other unknowns, flows and rough problems are among the rest."""
SMALL = [pytest.param(case, marks=[pytest.mark.slow] if case.name in SLOW else [], id=case.name) for case in STATED]


@pytest.mark.parametrize("case", some(SMALL, 7))
def test_a_small_version_is_solved(case):
    problem = stated(case, small=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rp.ConvergenceWarning if case.name in LEFT else ConditionWarning)
        solution = rp.solve(problem, tol=case.small_tol)
    reference = case.judged_at(problem, small=True)
    values, _ = judged(case, solution, reference.points)
    assert solution.converged or case.name in LEFT
    assert relative_error(values, reference.values, case.fields) <= case.small_tol


@pytest.mark.parametrize(
    ("statement", "values"), [(burgers.burgers_2d, burgers.start_values), (waves.gray_scott, waves.start_values)]
)
def test_the_start_of_a_reference_solver_is_the_one_that_is_stated(statement, values):
    problem = statement()
    points = problem.domain.sample(200, rng=5)
    points[:, 0] = 0.0
    state = ExactSolution({n: lambda p, k=k: values(p[:, 1], p[:, 2])[k] for k, n in enumerate(problem.fields)})
    starts = [term for term in problem.constraints if term.kind == "initial"]
    assert len(starts) == 2
    for term in starts:
        # 32 waves of phases up to 80: rounding of the phases, not of the sum, is what is left
        assert np.abs(term_residual(term, state, problem.vocabulary, points)).max() < 1e-12


def test_the_start_of_burgers_repeats_itself_on_the_unit_cell_and_has_the_height_that_is_stated():
    x, y = np.meshgrid(np.arange(200) / 200, np.arange(200) / 200)
    values = burgers.start_values(x, y)
    assert np.abs(burgers.start_values(x + 3, y + 1) - values).max() < 1e-12
    offsets = read_numbers("burgers_2d_c")[:, 33]
    assert values.max(axis=(1, 2)) - offsets == pytest.approx([2.0, 2.0], abs=0.01)  # the grid misses the top a little


def test_blocks_of_2d_ms_are_those_of_the_files():
    """With u = x²/2 the residual is a + f; in the middle of a block both sines are 1."""
    problem = poisson.poisson_2d_ms()
    middles = np.array([-8.0, -4.0, 0.0, 4.0, 8.0])
    points = np.array([(x, y) for x in middles for y in middles])
    known = rp.Problem(
        "laplace(u) = 1", problem.domain, {"sides": rp.On("boundary", "u = x**2/2")}, exact={"u": "x**2/2"}
    ).exact_solution
    mean, wave = poisson.block_loads()
    wanted = (read_numbers("poisson_2d_ms_a") + mean + wave).ravel()
    assert problem.residual(known, points)["equation"] == pytest.approx(wanted, rel=1e-12)


def test_blocks_are_nested_where():
    table = np.arange(6.0).reshape(3, 2)
    with pytest.raises(ValueError, match="shorter"):
        blocks(table, np.array([0.0, 1.0]))


def test_a_random_field_is_the_same_in_text_and_in_numbers():
    points = np.random.default_rng(0).random((50, 2))
    formula = random_field("wave_2d_cg", "x", "y")
    sides = {"sides": rp.On("boundary", f"u = {formula}")}
    problem = rp.Problem("laplace(u) = 0", rp.Box(x=(0, 1), y=(0, 1)), sides, exact={"u": formula})
    values = random_field_values("wave_2d_cg", *points.T)
    assert problem.exact_solution(points)[:, 0] == pytest.approx(values, rel=1e-13)
    assert 0.2 < values.min() < values.max() < 5


def test_a_relative_error_that_is_mostly_unknown_is_no_number():
    values = np.ones((10, 1))
    assert np.isnan(relative_error(np.full((10, 1), np.nan), values))
    assert relative_error(np.array([[1.0, 5.0]]), np.array([[1.0, 1.0]]), fields=1) == 0.0
