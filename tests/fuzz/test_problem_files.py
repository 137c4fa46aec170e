"""Any file or table is a problem or refused with our error that names an entry, within a budget of work."""

from __future__ import annotations

import tomllib
import warnings
from collections import Counter
from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzz.watch import fuzzing, report, watchdog
from rannpde.errors import InputError
from rannpde.pde.problem.checks import ConditionWarning
from rannpde.pde.problem.toml import examples, from_table, read_problem, to_table

SENSORS = """
equations = ["u_t = nu*u_xx", "v_xx = u"]
fields = ["u", "v"]
incomplete = true
[domain]
t = [0, 1]
x = [0, "pi/2"]
[parameters]
nu = 0.5
[conditions.sensors]
points = [[0.5, 0.5], [0.25, 1.0]]
values = [1.0, 2.0]
quantity = "u_x"
weight = 3
[conditions.circle]
periodic = "x"
fields = ["v"]
[bounds]
u = [0, "None"]
"""
TEXTS = [*examples().values(), SENSORS]
TABLES = [tomllib.loads(text) for text in TEXTS]
TALLY: Counter[str] = Counter()


@pytest.fixture(scope="module", autouse=True)
def tally():
    yield
    report(TALLY)


def judge(case: str, build) -> None:
    TALLY["tried"] += 1
    with watchdog(case), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConditionWarning)
        try:
            problem = build()
            assert problem.terms
        except InputError:
            TALLY["refused"] += 1
            return
        table = to_table(problem)
        assert table is None or from_table(table).fields == problem.fields
    TALLY["read"] += 1


# ------------------------------------------------------------------------------------------------------- tables

WORDS = st.sampled_from(
    [
        "u",
        "v",
        "x",
        "t",
        "on",
        "t=0",
        "x=0",
        "boundary",
        "None",
        "nu",
        "ball",
        "u = 0",
        "u_x",
        "periodic",
        "",
        "é",
        "a b",
    ]
)
PLAIN = st.one_of(
    WORDS,
    st.text(max_size=12),
    st.integers(),
    st.sampled_from([10**18, 10**400, -1, 0, 1]),
    st.floats(),
    st.booleans(),
    st.none(),
)
JUNK = st.recursive(
    PLAIN, lambda below: st.lists(below, max_size=4) | st.dictionaries(WORDS, below, max_size=3), max_leaves=8
)


def _spots(value, path=()):
    """Every place in nested tables and lists."""
    yield path
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in entries:
        yield from _spots(below, (*path, key))


def _plant(table, path, change):
    for key in path[:-1]:
        table = table[key]
    change(table, path[-1])


@st.composite
def tables(draw: st.DrawFn):
    table = deepcopy(draw(st.sampled_from(TABLES)))
    table.pop("solve", None)
    for _ in range(draw(st.integers(1, 2))):
        spots = [path for path in _spots(table) if path]
        if not spots:
            break
        path, junk = draw(st.sampled_from(spots)), draw(JUNK)
        kind = draw(st.sampled_from(["replace", "delete", "add"]))
        if kind == "replace":
            _plant(table, path, lambda place, key, junk=junk: place.__setitem__(key, junk))
        elif kind == "delete":
            _plant(table, path, lambda place, key: place.__delitem__(key))
        else:
            table[draw(WORDS | st.sampled_from(["fields", "bounds", "exact", "name", "parameters"]))] = junk
    return table


@fuzzing(0.5)
@given(tables())
def test_tables(table):
    judge(repr(table), lambda: from_table(table))


# -------------------------------------------------------------------------------------------------------- files

VALUES = st.sampled_from(
    [
        *["3", "-0.0", "nan", "inf", "1" + "0" * 400, "1" + "0" * 5000, "true", "1979-05-27", "07:32:00"],
        *["[]", "{}", "[[1]]", "[0, 1]", '["x=0", 1]', "{a = {b = {c = 1}}}", "[" * 50 + "]" * 50],
        *['"u"', '""', '"u_t = u_xx"', '"9**9**9**9"', '"u = where(x < 1/2, 1, 0)"'],
    ]
)


@st.composite
def files(draw: st.DrawFn) -> str:
    lines = draw(st.sampled_from(TEXTS)).splitlines()
    for _ in range(draw(st.integers(1, 2))):
        row = draw(st.integers(0, len(lines) - 1))
        kind = draw(st.sampled_from(["value", "header", "delete", "repeat", "character", "key"]))
        if kind == "value":
            lines[row] = lines[row].partition("=")[0] + "= " + draw(VALUES)
        elif kind == "header":
            lines[row] = draw(st.sampled_from(["[[fields]]", "[domain]", "[conditions.start]", "[solve]", "[a.b.c]"]))
        elif kind == "delete":
            lines[row] = ""
        elif kind == "repeat":
            lines.insert(row, lines[draw(st.integers(0, len(lines) - 1))])
        elif kind == "key":
            lines[row] = draw(WORDS) + " = " + draw(VALUES)
        else:
            at = draw(st.integers(0, len(lines[row])))
            lines[row] = (
                lines[row][:at] + draw(st.characters(codec="utf-8")) + lines[row][at + draw(st.integers(0, 2)) :]
            )
    return "\n".join(lines)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz") / "problem.toml"


@fuzzing(0.5)
@given(text=files())
def test_files(path, text):
    path.write_text(text, encoding="utf-8")
    judge(text, lambda: read_problem(path)[0])
