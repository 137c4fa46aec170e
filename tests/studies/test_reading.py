"""Studies written as TOML, and the names that are answered with the known ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from rannpde.errors import FileError, InputError
from rannpde.studies.catalogue import CHAPTERS, chapters
from rannpde.studies.layer import Layer
from rannpde.studies.problems import NavierStokes, PorousMedium
from rannpde.studies.reading import read_study

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "studies").glob("*.toml"))
BASE = """
name = "mine"
widths = [8, 16]
seeds = 2
penalty = 1e-7
[problem]
kind = "porous-medium"
space_dim = 2
[features]
scale = 4
[sampling]
test_points = 100
"""


def read(tmp_path: Path, text: str):
    path = tmp_path / "study.toml"
    path.write_text(text)
    return read_study(path)


def test_a_study_is_what_the_file_says(tmp_path: Path) -> None:
    first = '[[curves]]\nlabel = "a"\n'
    second = '[[curves]]\nlabel = "b"\npenalty = "gcv"\nfeatures.law = "uniform"\nproblem.space_dim = 3\n'
    study = read(tmp_path, BASE + first + second)
    a, b = study.cells[0], study.cells[2]
    assert (study.name, study.widths, study.seeds, len(study.cells)) == ("mine", (8, 16), (0, 1), 8)
    assert (a.problem, a.features, a.penalty) == (PorousMedium(2), Layer(scale=4), 1e-7)
    assert (b.problem, b.features, b.penalty) == (PorousMedium(3), Layer(law="uniform", scale=4), "gcv")
    assert a.sampling.test_points == 100


def test_a_nested_wave(tmp_path: Path) -> None:
    study = read(tmp_path, 'widths = [8]\n[problem]\nkind = "navier-stokes"\nwave.stiffness = 0.01\n')
    assert isinstance(study.problem, NavierStokes)
    assert study.problem.wave.stiffness == 0.01
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
        ("widths = [8]", "problem is missing"),
        ('[problem]\nkind = "gaussian-bump"', "widths is missing"),
        ("widths = [8]\n[problem]\nspace_dim = 1", "no kind"),
        ("widths = [8]\nproblem = 3", "problem is 3"),
        (BASE + "[[curves]]\npenalty = 1e-3", "no label"),
        (BASE.replace("[problem]", "curves = 3\n[problem]"), "curves is 3"),
        (BASE.replace("[sampling]", '[[curves]]\nlabel = "a"\n[[curves]]\nlabel = "a"\n[sampling]'), "labels"),
        ("widths = [8", "not a TOML file"),
        ('widths = [8]\n[problem]\nkind = "formula"\n', "missing"),
    ],
)
def test_wrong_files_are_refused_with_their_name(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=f"(?s)study.toml.*{message}"):
        read(tmp_path, text)


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="cannot be read"):
        read_study(tmp_path / "absent.toml")
    with pytest.raises(FileError, match="cannot be read"):
        read_study(tmp_path)
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileError, match="not a TOML file"):
        read_study(tmp_path / "binary.toml")
    (tmp_path / "large.toml").write_bytes(b"#" * (2**20 + 1))
    with pytest.raises(FileError, match="no study"):
        read_study(tmp_path / "large.toml")


@pytest.mark.parametrize("size", ["quick", "default", "full"])
def test_every_chapter_of_the_catalogue_has_work_and_a_question(size) -> None:
    for name, chapter in zip(CHAPTERS, chapters(None, size), strict=True):
        assert chapter.name == name
        assert chapter.study.cells
        assert chapter.question.endswith("?")
        assert chapter.study.title
    if size == "full":
        assert max(cell.width for chapter in chapters(None, size) for cell in chapter.study.cells) == 8192


def test_an_unknown_chapter_is_answered_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"study is 'porous'.*known: compact-set.*weight-laws"):
        chapters(["porous"], "quick")


def test_the_paper_s_protocol_is_in_the_presets() -> None:
    medium, stokes = (CHAPTERS[name]("default").study for name in ("porous-medium", "navier-stokes"))
    cell = medium.cells[0]
    assert (cell.features.scale, cell.penalty, cell.points, cell.sampling.focus) == (10.0, 1e-5, 10 * cell.width, 0.5)
    starts = {c.problem.space_dim: c.problem.first_time for c in medium.cells}
    assert starts == {1: 0.1, 2: 0.1, 3: 0.1, 4: 0.01, 5: 0.01}
    assert (medium.seeds, stokes.seeds) == ((0, 1, 2, 3, 4),) * 2
    cell = stokes.cells[-1]
    assert (cell.width, cell.points, cell.penalty, cell.features.scale) == (250, 500_000, 1e-3, 3.5)
    assert (cell.sampling.test_points, cell.sampling.fixed_test, len(stokes.cells)) == (20_000, True, 125)
