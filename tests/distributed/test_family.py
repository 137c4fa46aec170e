"""Families on a cluster: members are solved side by side."""

import numpy as np

import rannpde as rp


def test_a_family_is_solved_by_workers(client):
    problem = rp.Problem("-u_xx = a*x", rp.Interval(0, 1), {"boundary": "u = 0"}, parameters={"a": rp.Range(1, 2)})
    family = rp.solve(problem, tol=1e-6)
    assert family.converged
    assert abs(family(np.array([[0.5]]), a=1.5)[0] - 1.5 * 0.375 / 6) < 1e-7
