"""Studies written as TOML, and the names that are answered with the known ones."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from draws import draws
from rannpde.errors import FileError, InputError
from rannpde.studies.cell import Fit, Sampling
from rannpde.studies.layer import Layer
from rannpde.studies.paper.catalogue import CHAPTERS, chapters
from rannpde.studies.target import NavierStokes, PorousMedium, WrittenFunction
from rannpde.studies.toml import TARGETS, parse_study, read_study

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "studies").glob("*.toml"))
BASE = """
name = "mine"
widths = [8, 16]
seeds = 2
penalty = 1e-7
[target]
kind = "porous-medium"
space_dim = 2
[features]
scale = 4
[sampling]
test_points = 100
"""


FORMULA = 'widths = [8]\n[target]\nkind = "formula"\nexpression = "{}"\n'


def read(tmp_path: Path, text: str):
    path = tmp_path / "study.toml"
    path.write_text(text)
    return read_study(path)


def test_a_study_is_what_the_file_says(tmp_path: Path) -> None:
    first = '[[curves]]\nlabel = "a"\n'
    second = '[[curves]]\nlabel = "b"\npenalty = "gcv"\nfeatures.law = "uniform"\ntarget.space_dim = 3\n'
    study = read(tmp_path, BASE + first + second)
    a, b = study.cells[0], study.cells[2]
    assert (study.name, study.widths, study.seeds, len(study.cells)) == ("mine", (8, 16), (0, 1), 8)
    assert (a.target, a.features, a.penalty) == (PorousMedium(2), Layer(scale=4), 1e-7)
    assert (b.target, b.features, b.penalty) == (PorousMedium(3), Layer(law="uniform", scale=4), "gcv")
    assert a.sampling.test_points == 100


def test_a_nested_wave(tmp_path: Path) -> None:
    study = read(tmp_path, 'widths = [8]\n[target]\nkind = "navier-stokes"\nwave.stiffness = 0.01\n')
    assert isinstance(study.target, NavierStokes)
    assert study.target.wave.stiffness == 0.01
    assert study.name == "study"


def test_a_preset_with_other_widths(tmp_path: Path) -> None:
    study = read(tmp_path, 'preset = "porous-medium"\nwidths = [8, 16]\nseeds = [7]\nfeatures.scale = 3.0\n')
    assert [curve.label for curve in study.curves] == [f"d = {d}" for d in range(1, 6)]
    assert {cell.width for cell in study.cells} == {8, 16}
    assert {cell.features.scale for cell in study.cells} == {3.0}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_can_be_read(path: Path) -> None:
    assert len(read_study(path).cells) >= 3


def test_there_are_examples() -> None:
    assert EXAMPLES


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BASE.replace("[8, 16]", "[]"), "widths is .*at least one"),
        (BASE.replace("seeds = 2", "seeds = []"), "seeds is .*at least one"),
        (BASE.replace("seeds = 2", "seeds = 0"), "seeds"),
        (BASE.replace("[8, 16]", '["8"]'), "entry of widths"),
        (BASE.replace("porous-medium", "porous-medum"), "did you mean 'porous-medium'"),
        ('preset = "navier-stoke"', "did you mean 'navier-stokes'"),
        (BASE.replace("scale = 4", "scales = 4"), "'scales'.*did you mean 'scale'"),
        (BASE.replace("scale = 4", 'scale = "four"'), "features"),
        (BASE.replace("space_dim = 2", "space_dim = 0"), "space_dim is 0"),
        (BASE.replace("penalty = 1e-7", "penalty = -1"), "penalty"),
        ("with = 3", "'with'.*did you mean 'widths'"),
        ("widths = [8]", "target is missing"),
        ('[target]\nkind = "gaussian-bump"', "widths is missing"),
        ("widths = [8]\n[target]\nspace_dim = 1", "no kind"),
        ("widths = [8]\ntarget = 3", "target is 3"),
        (BASE + "[[curves]]\npenalty = 1e-3", "no label"),
        (BASE.replace("[target]", "curves = 3\n[target]"), "curves is 3"),
        (BASE.replace("[sampling]", '[[curves]]\nlabel = "a"\n[[curves]]\nlabel = "a"\n[sampling]'), "labels"),
        ("widths = [8", "TOML"),
        ('widths = [8]\n[target]\nkind = "formula"\n', "missing"),
        (BASE.replace("scale = 4", "scale = 1" + "0" * 400), "features.scale is 'a whole number of 401 digits'"),
        (BASE.replace("scale = 4", "scale = 1" + "0" * 5000), "TOML"),
        (BASE.replace("seeds = 2", "seeds = [1" + "0" * 400 + "]"), "an entry of seeds is"),
        (BASE.replace('kind = "porous-medium"', "kind = []"), "kind of the target is \\[\\].*known"),
        (BASE.replace('kind = "porous-medium"', "kind = {a = 1}"), "kind of the target"),
        (BASE.replace("[8, 16]", "3"), "widths is 3.*write widths = "),
        (BASE.replace("[8, 16]", "[200000]"), "entry of widths is 200000"),
        (BASE.replace("[features]", "[[features]]"), "features is .*a table.*write \\[features\\]"),
        (BASE.replace("[sampling]", "[[sampling]]"), "sampling is .*a table"),
        (BASE.replace("[target]", "[[target]]"), "target is .*a table"),
        (BASE.replace("seeds = 2", "seeds = 300000000"), "number of seeds is 300000000.*at most 10000"),
        (BASE.replace("seeds = 2", "seeds = 10000").replace("[8, 16]", str(list(range(1, 102)))), "number of cells"),
        (BASE.replace("seeds = 2", "seeds = 1979-05-27"), "seeds is datetime"),
        (BASE.replace("seeds = 2", "seeds = inf"), "seeds is inf"),
        (BASE.replace("scale = 4", "scale = nan"), "scale is nan"),
        (BASE.replace("space_dim = 2", "space_dim = 1000000000"), "space_dim is 1000000000.*at most 1000"),
        (BASE.replace("space_dim = 2", "radius = 1e300"), "too large"),
        (BASE.replace("test_points = 100", "test_points = 1000000000"), "test_points"),
        (BASE.replace("test_points = 100", "points_per_width = 90000000"), "points_per_width"),
        (BASE + "".join(f'[[curves]]\nlabel = "{k}"\n' for k in range(101)), "number of curves is 101"),
        ('preset = "theory-rates"\ntarget.space_dim = 0\n', "space_dim"),
        (BASE.replace('"mine"', f'"{"a" * 5000}"'), "name is"),
        (BASE + "a" * 5000 + " = 1\n", "unknown"),
        (FORMULA.format(" + ".join(f"sin({k}*x1)" for k in range(1000))), "more than 5000"),
        (FORMULA.format("x1 +" * 1000), "expected a number"),
        (FORMULA.format("arctan(t)"), "did you mean 'atan'"),
    ],
)
def test_wrong_files_are_refused_with_their_name(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=f"(?s)study.toml.*{message}") as caught:
        read(tmp_path, text)
    assert len(str(caught.value)) < 2000


def test_a_number_of_thousands_of_digits_is_refused_without_being_printed() -> None:
    with pytest.raises(InputError, match="seeds is 'a whole number of 5001 digits'"):
        parse_study({"seeds": 10**5000})


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="does not exist"):
        read_study(tmp_path / "absent.toml")
    for path in (tmp_path, Path("/dev/zero")):
        with pytest.raises(FileError, match="not an ordinary file"):
            read_study(path)
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileError, match="as TOML"):
        read_study(tmp_path / "binary.toml")
    (tmp_path / "large.toml").write_bytes(b"#" * (2**20 + 1))
    with pytest.raises(FileError, match="more than 1048576 bytes"):
        read_study(tmp_path / "large.toml")


def test_a_preset_with_unbiased_networks_takes_other_widths(tmp_path: Path) -> None:
    study = read(tmp_path, 'preset = "theory-rates"\nwidths = [8, 16]\nfeatures.scale = 2.0\n')
    assert {cell.widths for cell in study.cells} == {(8,), (16,), (8, 16)}


@pytest.mark.parametrize("name", ["pinn-loss", "sobolev-rates", "generalisation", "spectral-bias", "operator-laws"])
def test_a_preset_of_measurements_takes_other_widths_and_nothing_that_it_would_ignore(tmp_path: Path, name) -> None:
    study = read(tmp_path, f'preset = "{name}"\nwidths = [12, 24]\n')
    assert {cell.widths for cell in study.cells} == {(12, 24)}
    assert len(study.curves) == len(CHAPTERS[name]("default").study.curves)
    with pytest.raises(InputError, match="an entry of widths"):
        read(tmp_path, f'preset = "{name}"\nwidths = [12, 0]\n')
    for line in ("features.scale = 2.0", "penalty = 1e-3", "sampling.focus = 0.1"):
        with pytest.raises(InputError, match=f"left out with the preset {name}"):
            read(tmp_path, f'preset = "{name}"\n{line}\n')


NUMBERS = st.integers() | st.floats() | st.sampled_from([0, 1, -1, 2**53, 10**30, 10**400, 1e308])
WORDS = st.text(max_size=8) | st.sampled_from(
    [*CHAPTERS, *TARGETS, "fourier", "tanh", "heavy-tailed", "gcv", "sin(t)", "t**x1", "1/x1", "max(t)", "log(sin(4))"]
)
VALUES = st.recursive(
    NUMBERS | WORDS | st.booleans() | st.dates() | st.none(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def tables(*kinds: type) -> st.SearchStrategy[object]:
    """Tables with keys that the kinds know, holding anything; or anything else."""
    names = sorted({f.name for kind in kinds for f in fields(kind)} | {"kind"})
    known = st.sampled_from([{}, *({"kind": name} for name in TARGETS)])
    return st.builds(lambda one, other: one | other, known, st.dictionaries(st.sampled_from(names), VALUES)) | VALUES


CURVES = st.fixed_dictionaries(
    {}, optional={"label": WORDS, "target": tables(PorousMedium), "features": tables(Layer), "widths": VALUES}
)
STUDIES = st.fixed_dictionaries(
    {},
    optional={
        "preset": WORDS,
        "name": WORDS,
        "title": VALUES,
        "target": tables(PorousMedium, NavierStokes, WrittenFunction),
        "features": tables(Layer),
        "sampling": tables(Sampling),
        "penalty": VALUES,
        "widths": st.just([8, 16]) | VALUES,
        "seeds": st.just(2) | VALUES,
        "curves": st.lists(CURVES, max_size=3) | VALUES,
        "other": VALUES,
    },
)


@settings(max_examples=draws(100, 400), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STUDIES)
def test_whatever_a_file_holds_is_a_study_or_refused(content: dict) -> None:
    """Nothing but InputError leaves; what is accepted can be hashed and listed."""
    try:
        study = parse_study(content)
    except InputError:
        return
    assert len(study.cells) >= 1
    assert len(study.cells[0].key) == 64


@pytest.mark.parametrize("size", ["quick", "default", "full"])
def test_every_chapter_of_the_catalogue_has_work_and_a_question(size) -> None:
    for name, chapter in zip(CHAPTERS, chapters(None, size), strict=True):
        assert chapter.name == name
        assert chapter.study.cells
        assert chapter.question.endswith("?")
        assert chapter.study.title
    if size == "full":
        fits = [cell for chapter in chapters(None, size) for cell in chapter.study.cells if isinstance(cell, Fit)]
        assert max(cell.width for cell in fits) == 8192


def test_an_unknown_chapter_is_answered_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"study is 'porous'.*known: compact-set.*weight-laws"):
        chapters(["porous"], "quick")


def test_the_paper_s_protocol_is_in_the_presets() -> None:
    medium, stokes = (CHAPTERS[name]("default").study for name in ("porous-medium", "navier-stokes"))
    cell = medium.cells[0]
    assert (cell.features.scale, cell.penalty, cell.points, cell.sampling.focus) == (10.0, 1e-5, 10 * cell.width, 0.5)
    starts = {c.target.space_dim: c.target.first_time for c in medium.cells}
    assert starts == {1: 0.1, 2: 0.1, 3: 0.1, 4: 0.01, 5: 0.01}
    assert (medium.seeds, stokes.seeds) == ((0, 1, 2, 3, 4),) * 2
    cell = stokes.cells[-1]
    assert (cell.width, cell.points, cell.penalty, cell.features.scale) == (250, 500_000, 1e-3, 3.5)
    assert (cell.sampling.test_points, cell.sampling.fixed_test, len(stokes.cells)) == (20_000, True, 125)
