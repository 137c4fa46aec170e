"""The commands from end to end at tiny size: files, exit codes, what is printed, what is refused."""

from __future__ import annotations

import csv
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import ExitStack, closing
from dataclasses import replace
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from rannpde import io
from rannpde.cli import build
from rannpde.studies.curves import FittedCurve, MeasuredCurve, PathsCurve, UnbiasedCurve
from rannpde.studies.paper.catalogue import CHAPTERS
from rannpde.studies.reproduce import reproduce
from rannpde.studies.run.fit import FitResult
from rannpde.studies.run.runner import Failure
from rannpde.studies.show.chapter import Chapter
from rannpde.studies.show.figures import FORMATS
from rannpde.studies.show.progress import Display, duration
from rannpde.studies.study import Study

TOML = """
name = "tiny"
title = "A tiny <study> & more"
widths = [8, 16, 32]
seeds = 2
[target]
kind = "formula"
expression = "sin(3*x1 + t)"
[features]
scale = 3.0
[sampling]
test_points = 200
[[curves]]
label = "λ = 1e-5"
[[curves]]
label = "λ = 1e-9"
penalty = 1e-9
"""


def shrunk(chapter: Chapter) -> Chapter:
    """The chapter at the least size that still draws: small widths, one or two seeds, few test points."""
    study = chapter.study
    curves = []
    for curve in study.curves:
        if isinstance(curve, MeasuredCurve):
            small = tuple(8 * 2**k for k in range(min(3, len(curve.widths))))
            if len(curves) < 4:  # one solution, each kind of network
                curves.append(replace(curve, measurement=replace(curve.measurement, networks=small, draws=2)))
            continue
        if isinstance(curve, UnbiasedCurve) and curve.target.space_dim > 1:
            continue  # like those on an interval, but cost more
        if isinstance(curve, PathsCurve):
            if curve.target.space_dim <= 10:  # likewise
                curves.append(replace(curve, steps=4, training=200, paths=256))
            continue
        widths = None if curve.widths is None else tuple(8 * 2**k for k in range(min(3, len(curve.widths))))
        curve = replace(curve, widths=widths)
        if isinstance(curve, FittedCurve) and curve.sampling is not None:
            curve = replace(curve, sampling=replace(curve.sampling, points_per_width=20, test_points=2000))
        curves.append(curve)
    widths = tuple(8 * 2**k for k in range(min(3, len(study.widths))))
    sampling = replace(study.sampling, points_per_width=20, test_points=2000)
    return replace(chapter, study=replace(study, widths=widths, seeds=(0, 1), sampling=sampling, curves=tuple(curves)))


@pytest.fixture
def toml(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.toml"
    path.write_text(TOML)
    return path


def command(*arguments: object):
    return CliRunner().invoke(build(), [str(a) for a in arguments])


class Page(HTMLParser):
    """Collects what the tests ask about."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.targets: list[str] = []
        self.outside: list[str] = []
        self.tags: list[str] = []
        self.figures: list[dict[str, str | None]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        self.tags.append(tag)
        if values.get("id"):
            self.ids.append(values["id"] or "")
        if tag == "svg":
            self.figures.append(values)
        for name in ("href", "src"):
            target = values.get(name)
            if target:
                (self.targets if target.startswith("#") else self.outside).append(target)
        for reference in re.findall(r"url\(#([^)]*)\)", " ".join(v or "" for v in values.values())):
            self.targets.append(f"#{reference}")
        for name in ("aria-labelledby", "aria-describedby"):
            self.targets += [f"#{identifier}" for identifier in (values.get(name) or "").split()]


def check_page(text: str, figures: int) -> Page:
    page, figures = Page(text), figures + 2  # two open the page
    assert len(page.ids) == len(set(page.ids)), "ids must be unique"
    assert {t[1:] for t in page.targets} <= set(page.ids), "references must lead somewhere"
    assert page.outside == ["data:,"], "the page must stand alone"
    assert "script" not in page.tags
    assert len(page.figures) == figures
    assert all(f["role"] == "img" for f in page.figures)
    assert page.tags.count("title") == figures + 1
    assert page.tags.count("desc") == figures
    return page


def test_a_study_from_a_file_leaves_everything(tmp_path: Path, toml: Path) -> None:
    result = command("study", toml, "--out", tmp_path / "out", "--workers", 1)
    assert result.exit_code == 0, result.output
    folder = tmp_path / "out" / "tiny"
    names = {path.name for path in folder.rglob("*") if path.is_file()}
    assert names == {"records.sqlite", "report.html", "slopes.csv"} | {
        f"tiny{suffix}.{kind}" for suffix in ("", "-log") for kind in FORMATS
    }
    for word in ("slope", "95 % interval", "λ = 1e-9", str(folder / "report.html"), "12 cells"):
        assert word in result.output
    text = (folder / "report.html").read_text()
    check_page(text, figures=2)
    for word in ("A tiny &lt;study&gt; &amp; more", "Every parameter", "sin(3*x1 + t)", "numpy", "95 %", "rannpde"):
        assert word in text
    rows = list(csv.DictReader((folder / "slopes.csv").read_text().splitlines()))
    assert [row["curve"] for row in rows] == ["λ = 1e-5", "λ = 1e-9"]
    assert float(rows[1]["slope"]) < -1
    again = command("study", toml, "--out", tmp_path / "out", "--workers", 1)
    assert again.exit_code == 0
    assert "12 cells" not in again.output, "nothing was left to run"


@pytest.fixture
def one_format(monkeypatch) -> None:
    """Figures as SVG only: that all formats are written is a test of its own, and takes most of the time."""
    monkeypatch.setattr("rannpde.studies.show.figures.render_figure.__defaults__", (("svg",),))


@pytest.mark.slow  # beside a study from a file, and the tests of each chapter
@pytest.mark.usefixtures("one_format")
def test_every_chapter_runs_and_draws_at_tiny_size(tmp_path: Path) -> None:
    chapters = [shrunk(make("quick")) for make in CHAPTERS.values()]
    product = reproduce(chapters, tmp_path, heading="all", command="rannpde reproduce --quick")
    assert product.failures == ()
    drawn = {path.stem for path in product.figures}
    more = {"porous-medium-log", "navier-stokes-log", "navier-stokes-profile"}
    more |= {"porous-medium-run-time", "navier-stokes-run-time", "unknowns-together"}
    assert drawn == more | set(CHAPTERS)  # every chapter has a figure of its name
    text = product.page.read_text()
    check_page(text, figures=len(drawn))
    for phrase in ("What differs from the paper", "limited by", "straight from", "rannpde reproduce --quick", "gcv"):
        assert phrase in text
    for curve in ("porous-medium, d = 5: slope", "navier-stokes, v and u: slope"):
        assert re.search(rf"{curve}[^<]*Limited by [^<]*2 N neurons ×\d", text), curve
    assert len(product.slopes.rows) == sum(len(c.study.curves) for c in chapters if c.with_slopes)


def test_figures_are_the_same_bytes_for_the_same_data(tmp_path: Path) -> None:
    chapter = shrunk(CHAPTERS["dimension"]("quick"))
    one = reproduce([chapter], tmp_path / "a", heading="h", command="c")
    before = {path.name: path.read_bytes() for path in one.figures}
    two = reproduce([chapter], tmp_path / "a", heading="h", command="c")
    assert {path.name: path.read_bytes() for path in two.figures} == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["reproduce", "porous"], "study is 'porous', which is unknown.*known: .*porous-medium"),
        (["reproduce", "--quick", "--full"], "--quick"),
        (["reproduce", "--workers", "-1"], "workers"),
        (["study", "absent.toml"], "absent.toml does not exist"),
    ],
)
def test_wrong_commands_end_with_code_2_and_no_output(tmp_path: Path, arguments: list[str], message: str) -> None:
    result = command(*arguments, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert re.search(message, result.output, re.S), result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize("place", ["/proc/none", "taken"])
def test_a_folder_that_cannot_be_used_is_told_before_the_work(
    tmp_path: Path, toml: Path, place: str, monkeypatch
) -> None:
    if place == "taken":
        place = str(tmp_path / "file")
        Path(place).write_text("a file, not a folder")
    monkeypatch.setattr("rannpde.studies.reproduce.run_cells", None)  # any work would raise a TypeError
    result = command("study", toml, "--out", place)
    assert result.exit_code == 2
    assert re.search("output folder .* cannot be used", result.output)


def test_a_full_disk_is_told_before_the_work(tmp_path: Path, toml: Path, monkeypatch) -> None:
    monkeypatch.setattr(io, "FREE_BYTES", 2**70)
    monkeypatch.setattr("rannpde.studies.reproduce.run_cells", None)
    result = command("study", toml, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "MB are needed" in result.output


def test_foreign_records_are_refused_before_the_work(tmp_path: Path, toml: Path) -> None:
    folder = tmp_path / "out" / "tiny"
    folder.mkdir(parents=True)
    (folder / "records.sqlite").write_text("not yours")
    result = command("study", toml, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert (folder / "records.sqlite").read_text() == "not yours"
    assert not (folder / "report.html").exists()


@pytest.mark.usefixtures("one_format")
def test_a_changed_digit_is_told_and_the_cell_runs_again(tmp_path: Path, toml: Path) -> None:
    arguments = ("study", toml, "--out", tmp_path / "out", "--workers", 1)
    command(*arguments)
    folder = tmp_path / "out" / "tiny"
    before = (folder / "slopes.csv").read_text()
    with closing(sqlite3.connect(folder / "records.sqlite")) as connection, connection:
        connection.execute(
            "UPDATE cells SET result = replace(result, '\"error\": 0.', '\"error\": 1.') WHERE width = 8"
        )
    result = command(*arguments)
    assert result.exit_code == 0
    assert re.search("warning: 4 damaged rows of study 'tiny' in .*their cells run again", result.output)
    assert "12 cells, 8 of them finished before" in result.output
    assert (folder / "slopes.csv").read_text() == before
    assert "warning" not in command(*arguments).output


@pytest.mark.usefixtures("one_format")
@pytest.mark.parametrize("statement", ["DROP TABLE environments", "PRAGMA user_version = 1", "DROP TABLE cells"])
def test_files_that_cannot_be_used_end_with_code_2(tmp_path: Path, toml: Path, statement: str) -> None:
    arguments = ("study", toml, "--out", tmp_path / "out", "--workers", 1)
    command(*arguments)
    page = tmp_path / "out" / "tiny" / "report.html"
    page.unlink()
    with closing(sqlite3.connect(page.with_name("records.sqlite"))) as connection, connection:
        connection.execute(statement)
    result = command(*arguments)
    assert result.exit_code == 2
    assert re.search("records file .*(damaged|version 1).*--out", result.output)
    assert not page.exists()


def test_records_that_vanish_are_no_empty_report(tmp_path: Path, toml: Path, monkeypatch) -> None:
    monkeypatch.setattr("rannpde.studies.run.records.Records.add", lambda *_: None)
    result = command("study", toml, "--out", tmp_path / "out", "--workers", 1)
    assert result.exit_code == 2
    assert "12 finished cells are not in" in result.output


@pytest.mark.usefixtures("one_format")
def test_failures_are_listed_with_reasons_and_the_code_is_1(tmp_path: Path, toml: Path) -> None:
    toml.write_text(
        TOML.replace("sin(3*x1 + t)", "log(x1 - 0.3) + t")
    )  # NaN on a third of the box, finite at its centre
    good = '[[curves]]\nlabel = "good"\ntarget.kind = "gaussian-bump"\n'
    toml.write_text(toml.read_text() + good)
    result = command("study", toml, "--out", tmp_path / "out", "--workers", 1)
    assert result.exit_code == 1
    assert result.output.count("values has a NaN") >= 12
    text = (tmp_path / "out" / "tiny" / "report.html").read_text()
    assert "Cells that failed" in text
    check_page(text, figures=2)
    assert "good" in (tmp_path / "out" / "tiny" / "slopes.csv").read_text()


def test_interrupted_writing_leaves_the_old_file(tmp_path: Path, monkeypatch) -> None:
    path = io.write_whole(tmp_path / "figure.svg", "old")

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        io.write_whole(path, "new")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["figure.svg"]


@pytest.mark.usefixtures("one_format")
def test_interrupted_figures_leave_the_old_ones(tmp_path: Path, monkeypatch) -> None:
    chapter = shrunk(CHAPTERS["dimension"]("quick"))
    product = reproduce([chapter], tmp_path, heading="h", command="c")
    before = {path: path.read_bytes() for path in (*product.figures, product.page)}

    def broken(*_: object, **__: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", broken)
    with pytest.raises(OSError, match="disk full"):
        reproduce([chapter], tmp_path, heading="h", command="c")
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.usefixtures("one_format")
def test_a_disk_that_fills_up_is_one_line_and_code_2(tmp_path: Path, toml: Path, monkeypatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device", "report.html")

    monkeypatch.setattr("rannpde.studies.reproduce.write_whole", full)
    result = command("study", toml, "--out", tmp_path / "out", "--workers", 1)
    assert result.exit_code == 2
    assert "report.html: No space left on device; make room" in result.output
    assert "Traceback" not in result.output


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_finished(tmp_path: Path, toml: Path) -> None:
    toml.write_text(TOML.replace("seeds = 2", "seeds = 400"))
    # a shell that runs the tests in the background makes children ignore Ctrl-C; a terminal does not
    script = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from rannpde.cli import main; main()"
    )
    arguments = ["study", str(toml), "--out", str(tmp_path / "out"), "--workers", "2"]
    with ExitStack() as stack:
        process = stack.enter_context(
            subprocess.Popen(
                [sys.executable, "-c", script, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
        )
        stack.callback(process.kill)
        records = tmp_path / "out" / "tiny" / "records.sqlite"
        deadline = time.monotonic() + 60
        while not (records.exists() and records.stat().st_size > 40_000) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    assert "finished cells are kept" in output
    assert "Traceback" not in output


def test_doctor_prints_the_environment() -> None:
    result = command("doctor")
    assert result.exit_code in (0, 1)
    for word in ("Python", "numpy", "BLAS", "threads", "dsyrk", "GFlop/s"):
        assert word in result.output
    assert ("no issues found" in result.output) == (result.exit_code == 0)


def test_doctor_says_what_is_wrong(monkeypatch) -> None:
    monkeypatch.setattr("rannpde.cli.doctor.solved_example", list)  # what it says: see the first contacts
    monkeypatch.setattr("rannpde.studies.run.environment.symmetric_product_rate", lambda: 0.5)
    monkeypatch.setattr("rannpde.studies.run.environment._version", lambda name: None if name == "finufft" else "1")
    result = command("doctor")
    assert result.exit_code == 1
    assert "pip install finufft" in result.output
    assert "BLAS is slow" in result.output
    assert re.search(r"[23] issues found", result.output)  # the test run itself may restrict the threads


def test_progress_is_plain_lines_when_not_a_terminal(toml: Path, monkeypatch) -> None:
    from rannpde.studies.toml import read_study

    monkeypatch.setattr("rannpde.studies.show.progress.PLAIN_INTERVAL", 0.0)
    study: Study = read_study(toml)
    text = StringIO()
    outcome = FitResult(0.25, {"u": 0.25}, 0.2, 1e-5, 1.0, "dense", 10, 5, 0.1, 0.1)
    with Display(len(study.cells), study.cells[2:], Console(file=text, width=200)) as display:
        for cell in study.cells[2:-1]:
            display.notice(cell, replace(outcome, error=1 / cell.width))
        display.notice(study.cells[-1], Failure("no luck"))
    lines = text.getvalue().splitlines()
    assert lines[0] == "12 cells, 2 of them finished before"
    assert any("slope -1.00" in line and "left" in line and "error 0.0" in line for line in lines)
    assert "failed: tiny, λ = 1e-9, N = 32, seed 1: no luck" in lines
    assert lines[-1].startswith("12/12")
    assert "\x1b" not in text.getvalue()


def test_progress_is_live_on_a_terminal(toml: Path) -> None:
    from rannpde.studies.toml import read_study

    study = read_study(toml)
    text = StringIO()
    with Display(12, study.cells, Console(file=text, force_terminal=True, width=120)) as display:
        display.notice(study.cells[0], Failure("no luck"))
    assert "1/12" in text.getvalue()
    assert "\x1b[" in text.getvalue()


@pytest.mark.parametrize(("seconds", "text"), [(4.6, "5 s"), (240, "4 min"), (9000, "2.5 h")])
def test_durations_in_words(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.usefixtures("one_format")
def test_the_command_is_shown_as_it_was_given(tmp_path: Path, toml: Path, monkeypatch) -> None:
    monkeypatch.setattr(sys, "argv", ["rannpde", "study", "my file.toml"])
    command("study", toml, "--out", tmp_path / "out", "--workers", 1)
    assert "rannpde study &#x27;my file.toml&#x27;" in (tmp_path / "out" / "tiny" / "report.html").read_text()
