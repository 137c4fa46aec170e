"""Put what was measured into the pages: the public table in docs/benchmarks.md, its summary in README.md.

    python -m benchmarks.pinnacle                   # records in results/pinnacle
    python -m benchmarks.publish                    # both pages, from these and the reference solutions
    python -m benchmarks.publish results/idle       # from another folder

Rows of cases that the folder has no record of stay as they are. The summary is made of the table, so that they cannot
differ; a test holds them to that.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.harness.page import HEAD, markdown, result_table
from benchmarks.harness.record import BenchRecord, read_record
from benchmarks.harness.reference_solution import read_reference
from benchmarks.pinnacle.table import CASES
from rannpde.studies.show.chapter import Table

ROOT = Path(__file__).parents[1]
PAGE, README, REFERENCES = ROOT / "docs" / "benchmarks.md", ROOT / "README.md", ROOT / "benchmarks" / "references"
Row = tuple[str, ...]


def between(text: str, name: str) -> tuple[str, str, str]:
    """What stands before, between and after the marks of that name."""
    begin, end = f"<!-- {name}: written by benchmarks/publish.py -->\n", f"<!-- end of {name} -->"
    if text.count(begin) != 1 or text.count(end) != 1:
        raise SystemExit(f"the page has no place for {name}: it must hold {begin.strip()} and {end} once")
    before, _, rest = text.partition(begin)
    inside, _, after = rest.partition(end)
    return before + begin, inside, end + after


def replaced(path: Path, parts: Mapping[str, str]) -> None:
    """Write the page anew with these parts between their marks."""
    text = path.read_text(encoding="utf-8")
    for name, part in parts.items():
        before, _, after = between(text, name)
        text = before + part + after
    path.write_text(text, encoding="utf-8")


def rows_of(text: str) -> list[Row]:
    """The rows of a Markdown table, without its head."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]) for line in lines[2:]]


def long_rows(records: Mapping[str, BenchRecord], old: Sequence[Row]) -> list[Row]:
    """Rows of all cases: from records where there are any, else as they were."""
    was = {row[0]: row for row in old}
    rows = []
    for case in CASES.values():
        record = records.get(case.name)
        found = result_table([case], [record]).rows[0] if record is not None else was.get(case.title)
        if found is None:
            raise SystemExit(
                f"{case.title} has neither a record nor a row: run python -m benchmarks.pinnacle {case.name}"
            )
        rows.append(tuple(found))
    return rows


def reached(row: Row) -> bool:
    """Whether the goal's error was."""
    return row[HEAD.index("verdict")] in ("met", "accurate, late")


def summary(rows: Sequence[Row]) -> str:
    """What the table says, in a sentence."""
    cells = [dict(zip(HEAD, row, strict=True)) for row in rows]
    known = [cell for cell in cells if cell["error"] != "–" and cell["best published"] != "invalid"]
    below = sum(float(cell["error"]) < float(cell["best published"]) for cell in known)
    in_time = sum(cell["verdict"] == "met" for cell in cells)
    valid = sum(cell["best published"] != "invalid" for cell in cells)
    classical = sum(cell["better"] not in ("rannpde", "–") for cell in cells)
    return (
        f"PINNacle (`make pinnacle`): {sum(map(reached, rows))} of {len(rows)} cases reach the goal's error, "
        f"{in_time} of them within its seconds; "
        f"{below} of {valid} are below the best published error of a trained network; the classical solver of the same "
        f"run, given its grid by hand, wins {classical} rows.\n"
    )


def reference_rows() -> list[Row]:
    """Case, solver and what its grids are, the finest, what it is known to, and the goal."""
    rows = []
    for case in sorted((case for case in CASES.values() if case.reference), key=lambda case: case.title):
        lines = (REFERENCES / f"{case.reference}.txt").read_text(encoding="utf-8").splitlines()
        finest = re.split(r"\s{2,}", lines[lines.index("", 4) - 1])[0]
        label = lines[0].removeprefix(f"{case.title}: ")
        rows.append((case.title, label, finest, f"{read_reference(case.reference).accuracy:.1e}", f"{case.goal:.0e}"))
    return rows


def publish(records: Mapping[str, BenchRecord]) -> None:
    """Both pages."""
    old = rows_of(between(PAGE.read_text(encoding="utf-8"), "pinnacle")[1])
    rows = long_rows(records, old)
    references = Table("", ("case", "solver: grid", "finest", "known to", "goal"), tuple(reference_rows()))
    replaced(PAGE, {"pinnacle": markdown(Table("", HEAD, tuple(rows))), "reference-solutions": markdown(references)})
    replaced(README, {"pinnacle": summary(rows)})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("results/pinnacle"))
    folder = parser.parse_args().folder
    found = {name: read_record(folder, name) for name in CASES}
    records = {name: record for name, record in found.items() if record is not None and not record.settings["small"]}
    publish(records)
    kept = ", ".join(sorted(set(CASES) - set(records)))
    print(f"{len(records)} rows from {folder}" + (f"; as they were: {kept}" if kept else ""))


if __name__ == "__main__":
    main()
