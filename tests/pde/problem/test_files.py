"""Problems in TOML files: the examples are sound, strangers' files are refused with the reason."""

from __future__ import annotations

import pytest

from rannpde.errors import FileError, InputError
from rannpde.pde.problem.toml import example, examples, from_table, read_problem, to_table
from rannpde.pde.zoo import ZOO, zoo

GOOD = """
equations = ["u_xx = -u"]
[domain]
x = [0, "pi/2"]
[conditions.ends]
on = "boundary"
equation = "u = sin(x)"
[exact]
u = "sin(x)"
[solve]
method = "collocation"
width = 40
scale = 1.0
"""


def write(tmp_path, text):
    path = tmp_path / "problem.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", examples())
def test_examples_state_sound_problems(name, tmp_path):
    problem, settings = read_problem(write(tmp_path, example(name)))
    assert problem.fields
    assert set(settings) - {"at"} == {"tol"}  # an example shows that nothing needs to be tuned
    assert example(name).startswith("# ")  # the line that the listing shows


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        ("u_xx = -u", "u_xx = -u.__class__", "no meaning"),
        ("u_xx = -u", "u_xx = __import__(1)", "unknown"),
        ("u_xx = -u", "u_xx = 9**9**9**9", "refused"),
        ("u_xx = -u", "u_xx = " + "(" * 3000 + "u" + ")" * 1000, "deeper"),
        ("u_xx = -u", "u_xx = " + "u + " * 40_000 + "u", "characters"),
        ("equations", "equatons", "did you mean 'equations'"),
        ("on =", "at =", "unknown"),
        ("[domain]", "[domian]", "unknown"),
        ('x = [0, "pi/2"]', "x = [1, 0]", "lower < upper"),
        ('x = [0, "pi/2"]', "x = 3", "interval"),
        ('x = [0, "pi/2"]', "", "domain"),
        ("boundary", "x=7", "outside"),
        ('u = "sin(x)"', "u = [1]", "exact"),
        ("[exact]", "[exact", "TOML"),
    ],
)
def test_bad_files_say_what_is_wrong(old, new, hint, tmp_path):
    with pytest.raises(InputError, match=hint):
        read_problem(write(tmp_path, GOOD.replace(old, new, 1)))


FULL = """\
name = "a"
equations = ["u_t = nu*u_xx"]
fields = ["u"]
[domain]
t = [0, 1]
x = [0, 1]
[parameters]
nu = 0.5
[conditions.start]
on = "t=0"
equation = "u = sin(pi*x)"
[conditions.ends]
on = ["x=0", "x=1"]
equation = "u = 0"
weight = 2
[bounds]
u = [0, "None"]
[exact]
u = "exp(-nu*pi**2*t)*sin(pi*x)"
[solve]
width = 40
method = { kind = "lines", values = [1, "two", true] }
"""


def test_a_full_file_and_its_settings_as_they_stand(tmp_path):
    problem, settings = read_problem(write(tmp_path, FULL))
    assert problem.bounds == {"u": (0.0, None)}
    assert problem.conditions["ends"].weight == 2
    assert settings == {"width": 40, "method": {"kind": "lines", "values": [1, "two", True]}}
    again = from_table(to_table(problem))
    assert again.bounds == problem.bounds
    assert again.parameters == problem.parameters


@pytest.mark.parametrize(
    ("old", "new", "key", "line", "column"),
    [
        ('["u_t = nu*u_xx"]', "3", "equations is 3", 2, 13),
        ('["u_t = nu*u_xx"]', "[3]", "equations is", 2, 13),
        ('["u_t = nu*u_xx"]', '["u_t = nu*u_xx +"]', "equation 'equation'", 2, 30),
        ('name = "a"', "name = []", "name is", 1, 8),
        ('fields = ["u"]', "fields = [1]", "fields is", 3, 10),
        ('fields = ["u"]', 'fields = "u"', "fields is", 3, 11),
        ('fields = ["u"]', "incomplete = 1", "incomplete is 1", 3, 14),
        ('name = "a"', 'equation = "u_t = u_xx"', "did you mean 'equations'", 1, 1),
        ("[bounds]", "[bound]", "did you mean 'bounds'", 16, 2),
        ("t = [0, 1]", "t = [0]", "domain.t", 5, 5),
        ("x = [0, 1]", "x = [0, [1]]", "domain.x", 6, 5),
        ("x = [0, 1]", 'x = [0, "u"]', "domain.x", 6, 10),
        ("x = [0, 1]", "ball = 3", "domain.ball", 6, 8),
        ("x = [0, 1]", "ball = {centre = [0, 0], radius = []}", "domain.ball", 6, 8),
        ("x = [0, 1]", "ball = {centre = 3, radius = 1}", "domain.ball.centre", 6, 8),
        ("nu = 0.5", 'nu = "0.5"', "parameters.nu", 8, 7),
        ("nu = 0.5", "nu = true", "parameters.nu", 8, 6),
        ("nu = 0.5", "nu = nan", "parameters.nu", 8, 6),
        ("nu = 0.5", "nu = 1" + "0" * 400, "parameters.nu", 8, 6),
        ("nu = 0.5", "nu = 1979-05-27", "parameters.nu is 'date'", 8, 6),
        ('on = "t=0"', "on = 0", "conditions.start: on is 0", 10, 6),
        ('on = "t=0"', 'on = "t=0"\nfields = ["u"]', "unknown", 11, 1),
        ('on = "t=0"', 'periodic = ["x"]', "conditions.start", 11, 1),
        ('equation = "u = 0"', "equation = {}", "conditions.ends: equation is", 14, 12),
        ('equation = "u = 0"', 'equation = "u = zero"', "condition 'ends'", 14, 17),
        ("weight = 2", "weight = -2", "conditions.ends: weight", 15, 10),
        ("weight = 2", "weight = inf", "conditions.ends.weight", 15, 10),
        ('u = [0, "None"]', "u = 0", "bounds.u", 17, 5),
        ('u = [0, "None"]', "u = [1, 0]", "lower < upper", 17, 5),
        ('u = "exp(-nu*pi**2*t)*sin(pi*x)"', "u = {}", "exact.u", 19, 5),
        ("[conditions.start]", "[[conditions]]", "unknown|conditions", 0, 0),
        ("width = 40", "width = 1" + "0" * 30, "solve.width", 21, 9),
        ("width = 40", "width = " + "[" * 12 + "]" * 12, "nested at most", 21, 9),
    ],
)
def test_wrong_entries_are_named_with_their_line_and_column(old, new, key, line, column, tmp_path):
    assert old in FULL
    with pytest.raises(InputError, match=key) as caught:
        read_problem(write(tmp_path, FULL.replace(old, new, 1)))
    if not key.startswith("unknown|"):
        assert f"problem.toml, line {line}, column {column}: " in str(caught.value)


@pytest.mark.parametrize(
    "points", ["3", "[[1]]", "[[[1, 2]]]", '[["a", "b"]]', "[[0.5, 9]]", "[[nan, 0.5]]", "[]", "[[0.5, 0.5], 1]"]
)
def test_points_of_a_wrong_shape_are_named(points, tmp_path):
    sensor = f"[conditions.sensor]\npoints = {points}\nvalues = [1.0]\n[bounds]"
    with pytest.raises(InputError, match=r"conditions\['sensor'\]"):
        read_problem(write(tmp_path, FULL.replace("[bounds]", sensor)))


def test_numbers_of_thousands_of_digits_are_refused(tmp_path):
    with pytest.raises(FileError, match="TOML"):
        read_problem(write(tmp_path, FULL.replace("nu = 0.5", "nu = 1" + "0" * 5000)))


def test_huge_deep_binary_and_missing_files_are_refused(tmp_path):
    with pytest.raises(FileError, match="bytes"):
        read_problem(write(tmp_path, "# " + "x" * 10_000_000))
    with pytest.raises(FileError, match="TOML"):
        read_problem(write(tmp_path, "a = " + "[" * 5000 + "]" * 5000))
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileError, match="TOML"):
        read_problem(tmp_path / "binary.toml")
    with pytest.raises(FileError, match="does not exist"):
        read_problem(tmp_path / "nothing.toml")


NOT_TEXT = ("burgers", "navier_stokes_eulerian", "navier_stokes_lagrangian", "porous_medium")
"""Problems whose exact solution or coefficients are functions of Python."""


@pytest.mark.parametrize("name", ZOO)
def test_text_problems_survive_a_round_trip(name):
    problem = zoo(name)
    table = to_table(problem)
    assert (table is None) == (name in NOT_TEXT)
    if table is None:
        return
    again = from_table(table)
    assert again.fields == problem.fields
    assert [term.expression.formula for term in again.terms] == [term.expression.formula for term in problem.terms]
    assert (again.domain.bounds == problem.domain.bounds).all()


SHORT = """
equations = ["u_t = u_xx"]
[domain]
t = [0, 1]
x = [0, 1]
[conditions]
"t=0" = "u = sin(pi*x)"
boundary = ["u = 0"]
"""


def test_conditions_in_short_stand_for_their_tables(tmp_path):
    problem, _ = read_problem(write(tmp_path, SHORT))
    assert [type(condition).__name__ for condition in problem.conditions.values()] == ["On", "On"]
    assert from_table(to_table(problem)).fingerprint == problem.fingerprint


def test_a_condition_with_a_name_may_have_several_equations(tmp_path):
    text = """
equations = ["u_xxxx = 24"]
[domain]
x = [0, 1]
[conditions.ends]
on = ["x=0", "x=1"]
equation = ["u = x**4", "u_x = 4*x**3"]
"""
    problem, _ = read_problem(write(tmp_path, text))
    assert [one.equation for one in problem.conditions.values()] == ["u = x**4", "u_x = 4*x**3"]
    assert from_table(to_table(problem)).fingerprint == problem.fingerprint


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ('"u = sin(pi*x)"', '"u = sine(pi*x)"', "line 7, column 14"),
        ('"t=0" =', '"t=7" =', "line 7"),
        ('["u = 0"]', "[3]", "line 8, column 12"),
    ],
)
def test_faults_of_conditions_in_short_are_located(old, new, place, tmp_path):
    with pytest.raises(InputError, match=place):
        read_problem(write(tmp_path, SHORT.replace(old, new)))
