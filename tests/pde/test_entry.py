"""What ``solve`` and ``ensemble`` refuse before any work."""

import pytest

import rannpde as rp


@pytest.mark.parametrize(
    ("argument", "value"),
    [("rng", -1), ("rng", "a"), ("progress", 3), ("seconds", 0), ("seconds", "a"), ("tol", "a"), ("method", rp.Lines)],
)
def test_senseless_arguments_are_named(argument, value):
    with pytest.raises(rp.InputError, match=f"^{argument} is"):
        rp.solve(rp.zoo("heat"), **{argument: value})


def test_an_ensemble_has_two_members_or_more_and_a_seed():
    with pytest.raises(rp.InputError, match="count"):
        rp.ensemble(rp.zoo("heat"), 1)
    with pytest.raises(rp.InputError, match="rng"):
        rp.ensemble(rp.zoo("heat"), 2, rng=-1)


@pytest.mark.parametrize("name", ["heat", "poisson", "nonlinear_poisson"])
def test_a_solve_reads_no_statement_again(name, monkeypatch):
    problem = rp.zoo(name)

    def refuse(*_):
        raise AssertionError("a statement was expanded during the solve")

    monkeypatch.setattr("rannpde.pde.statement.expansion._Expansion.run", refuse)
    assert rp.solve(problem, tol=1e-4).converged


def test_a_pressure_without_a_level_is_no_obstacle():
    """A closed cavity as users state it: nothing fixes the pressure, whose mean is then zero."""
    equations = ["-laplace(u) + p_x = 0", "-laplace(v) + p_y = 0", "u_x + v_y = 0"]
    walls = {"y=0.9": ["u = x**2*(1.2 - x)**2", "v = 0"], "boundary except y=0.9": ["u = 0", "v = 0"]}
    solution = rp.solve(rp.Problem(equations, rp.Box(x=(0, 1.2), y=(0, 0.9)), walls), tol=1e-3)
    assert solution.converged
    assert abs(solution.mean("p").value) < 1e-3 * abs(solution.maximum("p").value)
