"""The page of a benchmark: one table, what happened to each case, what is wrong with its references, versions."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path

from benchmarks.harness.case import Case
from benchmarks.harness.record import BenchRecord
from benchmarks.harness.verdicts import aim, better_solver, verdict
from benchmarks.pinnacle.faults import FAULTS
from rannpde.pde.problem.problem import Problem
from rannpde.studies.show.chapter import Table
from rannpde.studies.show.markup import bullets, document, machine, table_of

HEAD = (
    "case", "goal", "error", "estimate", "converged", "method", "seconds", "CPU s", "MiB", "verdict", "best published",
    "classical solver", "its error", "its seconds", "better",
)  # fmt: skip
METHOD = (
    "Every case is solved by solve(problem, tol=goal, seconds=budget) and nothing else, in a process of its own; the "
    "budget is one and a half of the goal's seconds, 20 s at least. Errors are relative L² at points that no solver "
    "saw, the largest over the fields that count, against the exact solution or the reference solution of an "
    "independent solver. Seconds are those of the clock, with the reading of the statement, after one small solve "
    "that loads the libraries; MiB are the peak of the process. The classical solver was given its grid by hand. "
    "Better is the one that reached the goal's error, of both the faster, of neither the more accurate. “Best "
    "published” is the lowest relative L² error of trained networks found up to now."
)


def number(value: float | None, form: str = ".1e") -> str:
    """A number for the table, – where it is not known.

    >>> number(None), number(0.00123), number(12.34, ".1f")
    ('–', '1.2e-03', '12.3')
    """
    return "–" if value is None else format(value, form)


def cells(case: Case, record: BenchRecord) -> tuple[str, ...]:
    """A row of the table."""
    solved = record.outcome == "solved"
    published = "invalid" if case.published is None else number(case.published)
    if record.settings.get("small"):  # nobody published anything of those
        published = "–"
    goal, seconds = aim(case, record)
    theirs = number(record.solver_error) if not record.solver_message else record.solver_message.partition(":")[0]
    return (
        case.title, f"{goal:.0e} in {seconds:g} s", number(record.error), number(record.estimate),
        ("yes" if record.converged else "no") if solved else "–", record.method or "–", number(record.seconds, ".1f"),
        number(record.processor_seconds, ".1f"), number(record.memory, ".0f"), verdict(case, record), published,
        record.solver or "–", theirs, number(record.solver_seconds, ".2f"), better_solver(case, record) or "–",
    )  # fmt: skip


def result_table(cases: Sequence[Case], records: Sequence[BenchRecord]) -> Table:
    """All rows."""
    rows = tuple(cells(case, record) for case, record in zip(cases, records, strict=True))
    small = any(record.settings.get("small") for record in records)
    caption = "PINNacle" + (": small versions of the cases, loose tolerances" if small else "")
    return Table(caption, HEAD, rows)


def markdown(table: Table) -> str:
    """The same for a text file."""
    lines = [table.head, ("---",) * len(table.head), *table.rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"


def render(cases: Sequence[Case], records: Sequence[BenchRecord], folder: Path, command: str) -> str:
    """The whole page; pictures are read from the folder and put inside."""
    title = "PINNacle, solved from its statements"
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    pairs = list(zip(cases, records, strict=True))
    met = sum(verdict(*pair).startswith(("met", "accurate")) for pair in pairs)
    if any(record.settings.get("small") for record in records):
        message = "small versions of cases reach the error that was asked for; nothing published compares with them"
    else:
        below = sum(r.error is not None and c.published is not None and r.error < c.published for c, r in pairs)
        message = f"cases reach the goal's error; {below} are below the best published error of trained networks"
    head = (
        f"<header><h1>{escape(title)}</h1>\n<p>{met} of {len(pairs)} {message}.</p>\n"
        f'<p class="facts">{made}. Made by <code>{escape(command)}</code></p></header>\n'
        '<nav aria-label="Sections"><ul><li><a href="#table">Table</a></li>'
        '<li><a href="#references">References</a></li><li><a href="#cases">Cases</a></li>'
        '<li><a href="#machine">Versions</a></li></ul></nav>'
    )
    rows = table_of(result_table(cases, records))
    for case in cases:
        name = escape(case.title)
        rows = rows.replace(f"<td>{name}</td>", f'<td><a href="#{escape(case.name)}">{name}</a></td>', 1)
    table = f'<section><h2 id="table">Table</h2>{rows}<p class="facts">{METHOD}</p></section>'
    details = "".join(_section(case, record, folder) for case, record in pairs)
    environments = list({repr(record.environment): record.environment for record in records}.values())
    body = [
        head,
        table,
        _faults(cases),
        f'<section><h2 id="cases">Cases</h2>{details}</section>',
        machine(environments),
    ]
    return document(title, body)


def _faults(cases: Sequence[Case]) -> str:
    titles = {case.name: case.title for case in cases}
    message = [f"{titles[one.case]}: {one.claim} Proof: {one.proof()}." for one in FAULTS if one.case in titles]
    heading = '<h2 id="references">What is wrong with the benchmark\'s own references</h2>'
    return f"<section>{heading}{bullets('Each claim is a test', message)}</section>" if message else ""


def _section(case: Case, record: BenchRecord, folder: Path) -> str:
    allowed = f"tol {record.settings['tol']:.0e}, {record.settings['seconds']:g} s allowed"
    known = f"the reference solution is known to {record.accuracy:.0e}" if record.accuracy else ""
    message = [text for text in (case.remark, record.message, known, allowed, record.solver_message) if text]
    stated = f"<pre>{escape(_stated(case.problem(bool(record.settings['small']))))}</pre>"
    heading = f'<h3 id="{escape(case.name)}">{escape(case.title)}</h3>'
    items = "".join(f"<li>{escape(text)}</li>" for text in message)
    return f"{heading}{stated}<ul>{items}</ul>{_picture(record, case, folder)}"


def _stated(problem: Problem) -> str:
    """Equations and domain as they were given, cut where formulas are long."""
    unknown = [f"find {name}({', '.join(one.of)})" for name, one in problem.unknown.items()]
    lines = [*map(str, problem.equations.values()), *unknown, repr(problem.domain)]
    return "\n".join(line if len(line) <= 300 else line[:297] + "…" for line in lines)


def _picture(record: BenchRecord, case: Case, folder: Path) -> str:
    path = folder / record.picture
    if not record.picture or not path.is_file():
        return ""
    data = b64encode(path.read_bytes()).decode("ascii")
    return (
        f'<figure><img src="data:image/png;base64,{data}" alt="The solution of {escape(case.title)}" '
        'style="max-width: 100%; height: auto"></figure>'
    )
