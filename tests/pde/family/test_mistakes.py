"""Wrong arguments of minimise, propagate and posterior: each is answered with its name and a remedy."""

import numpy as np
import pytest
from scipy import stats

import rannpde as rp

POINTS = np.linspace(0.1, 0.9, 9)[:, None]
LAWS = {"a": stats.uniform(1, 3), "b": stats.uniform(0, 1)}
MEASURED = np.linspace(0, 1, 9)


@pytest.fixture(scope="module")
def family():
    conditions = {"x=0": "u = 0", "x=1": "u = b"}
    ranges = {"a": rp.Range(1, 4), "b": rp.Range(0, 1)}
    problem = rp.Problem("-u_xx = a", rp.Interval(0, 1), conditions, parameters=ranges, outputs={"heat": "u"})
    return rp.solve(problem, tol=1e-3)


@pytest.fixture(scope="module")
def height(family):
    return family.output(lambda solution: float(solution(np.array([[0.5]]))[0]))


def refused(match):
    return pytest.raises(rp.InputError, match=match)


@pytest.mark.parametrize(
    ("quantity", "match"),
    [
        (None, "quantity is None"),
        (3, "quantity is 3"),
        ("drag", "output is 'drag'.*known: heat"),
        (lambda solution: solution(POINTS), "one number"),
        (lambda solution: "high", "the quantity is 'str'"),
        (lambda solution: 1j, "real"),
        (lambda solution: np.nan, "NaN"),
        (lambda solution: None, "NaN"),
    ],
)
def test_quantities(family, quantity, match):
    with refused(match):
        family.minimise(quantity)


def test_a_quantity_of_another_family(family, height):
    other = type(height)({"c": rp.Range(0, 1)}, height.grid, height.values, 0.0)
    with refused("quantity is 'one of c', but must be one of a, b"):
        family.minimise(other)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"bounds": [(0, 1)]}, "bounds is .*a mapping"),
        ({"bounds": {"a": (np.nan, 2)}}, r"bounds\['a'\].*from 1 to 4"),
        ({"bounds": {"a": (1, np.inf)}}, r"bounds\['a'\].*from 1 to 4"),
        ({"bounds": {"a": "1, 2"}}, r"bounds\['a'\]"),
        ({"bounds": {"z": (0, 1)}}, "known: a, b"),
        ({"bounds": {"a": (1, 2)}, "fixed": {"a": 3}}, r"bounds\['a'\].*left out"),
        ({"fixed": ["a"]}, "fixed is .*a mapping"),
        ({"fixed": {"a": 9}}, r"fixed\['a'\].*from 1 to 4"),
        ({"fixed": {"a": (1, 2)}}, r"fixed\['a'\]"),
        ({"maximise": "yes"}, "maximise"),
    ],
)
def test_bounds(family, height, arguments, match):
    with refused(match):
        family.minimise(height, **arguments)


def test_bounds_may_be_arrays(family, height):
    assert family.minimise(height, bounds={"a": np.array([2.0, 3.0])}).values["a"] == pytest.approx(2)


@pytest.mark.parametrize(
    ("law", "match"),
    [
        (stats.uniform, r"the law of a is .*frozen.*stats.uniform\(1, 3\)"),
        ("uniform", "the law of a"),
        ((1, 3), "the law of a"),
        (True, "the law of a"),
        (np.linspace(1, 4, 10), "the law of a"),
        (stats.uniform([1, 1], [3, 3]), "one distribution"),
        (stats.uniform(1, -3), "parameters that SciPy allows"),
        (np.nan, "from 1 to 4"),
    ],
)
def test_laws(family, height, law, match):
    with refused(match):
        family.propagate(LAWS | {"a": law}, height)


@pytest.mark.parametrize(
    ("laws", "arguments", "match"),
    [
        (None, {"points": POINTS}, "laws is None"),
        (list(LAWS.values()), {"points": POINTS}, "laws is"),
        (LAWS, {}, "either"),
        (LAWS, {"points": POINTS, "quantity": "heat"}, "either"),
        (LAWS, {"points": np.zeros((3, 2))}, r"points with shape is \(3, 2\)"),
        (LAWS, {"points": np.array([[5.0]])}, "outside of the domain"),
        (LAWS, {"points": np.array([[np.nan]])}, "points has a NaN"),
        (LAWS, {"points": POINTS, "rng": "x"}, "rng is 'x'"),
        (LAWS, {"points": POINTS, "rng": -1}, "rng is -1"),
    ],
)
def test_propagation(family, laws, arguments, match):
    with refused(match):
        family.propagate(laws, **arguments)


def test_questions_to_what_was_propagated(family, height):
    found = family.propagate(LAWS, height)
    for asked, match in (
        (lambda: found.quantiles([5, 50, 95]), "probabilities.*0.95 means 95 %"),
        (lambda: found.quantiles([]), "probabilities"),
        (lambda: found.quantiles("median"), "probabilities"),
        (lambda: found.band(95), "confidence is 95"),
        (lambda: found.band("wide"), "confidence"),
        (lambda: found.sample(-1), "count is -1"),
        (lambda: found.sample(1.5), "count is 1.5"),
        (lambda: found.sample(3, rng="x"), "rng is 'x'"),
    ):
        with refused(match):
            asked()


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"measured": MEASURED[:3]}, "measured with size is 3, but must be 9"),
        ({"measured": np.nan * MEASURED}, "measured has a NaN"),
        ({"measured": "high"}, "measured"),
        ({"noise": 0}, "noise is 0"),
        ({"noise": [0.1, -0.1]}, "noise"),
        ({"noise": None}, "noise is None"),
        ({"noise": "gauss"}, "noise is 'gauss'"),
        ({"noise": stats.norm}, "noise is .*frozen"),
        ({"noise": stats.poisson(1)}, "noise is"),
        ({"noise": lambda differences: 0.0}, r"noise\(differences\) with shape is \(\).*axis=1"),
        ({"noise": lambda differences: differences}, r"noise\(differences\).*axis=1"),
        ({"noise": lambda differences: np.full(len(differences), np.nan)}, "positive density"),
        ({"prior": [stats.uniform(1, 3)]}, "prior is"),
        ({"prior": {"z": stats.uniform(1, 3)}}, "known: a, b"),
        ({"prior": {"a": 2.0}}, r"prior\['a'\] is 2.0.*stats.uniform"),
        ({"prior": {"a": stats.norm}}, r"prior\['a'\].*frozen"),
        ({"prior": {"a": stats.poisson(2)}}, r"prior\['a'\].*continuous"),
        ({"prior": {"a": stats.uniform(10, 3)}}, "positive density"),
        ({"samples": 0}, "samples is 0"),
        ({"samples": 1.5}, "samples is 1.5"),
        ({"rng": "x"}, "rng is 'x'"),
        ({"points": None}, "either"),
        ({"quantity": "heat"}, "either"),
    ],
)
def test_posteriors(family, arguments, match):
    with refused(match):
        family.posterior(**{"measured": MEASURED, "noise": 0.1, "points": POINTS} | arguments)


def test_questions_to_a_posterior(family):
    measured = family(POINTS, a=2.5, b=0.3)
    found = family.posterior(measured, (1e-2,) * 9, points=POINTS, samples=500)
    assert abs(found.mean["a"] - 2.5) < 5 * found.std["a"]
    with refused("known: a, b"):
        found.interval("z")
    for confidence in (95, "wide"):
        with refused("confidence"):
            found.interval("a", confidence)


def test_values_without_names(family):
    with refused(r"family\(points, a=2.5, b=0.5\)"):
        family(POINTS, 2.0)
