"""Running a cell, whichever kind it is, and its result as JSON and back."""

from __future__ import annotations

import json
from dataclasses import asdict

from rannpde.errors import InputError, choose
from rannpde.studies.cell import Fit, MeasurementCell, PathsCell, StudyCell, Unbiased
from rannpde.studies.run.fit import FitResult, run_fit
from rannpde.studies.run.measured import MeasuredResult, run_measurement
from rannpde.studies.run.paths import PathsResult, run_paths
from rannpde.studies.run.unbiased import UnbiasedResult, run_unbiased

Result = FitResult | UnbiasedResult | MeasuredResult | PathsResult

_KINDS: dict[str, type[Result]] = {
    kind.__name__: kind for kind in (FitResult, UnbiasedResult, MeasuredResult, PathsResult)
}


def run_cell(cell: StudyCell) -> Result:
    """The result of a cell, which depends on the cell alone."""
    match cell:
        case Fit():
            return run_fit(cell)
        case Unbiased():
            return run_unbiased(cell)
        case MeasurementCell():
            return run_measurement(cell)
        case PathsCell():
            return run_paths(cell)
    raise TypeError(f"{type(cell).__name__} is no kind of cell")


def result_text(result: Result) -> str:
    """The result as JSON."""
    return json.dumps({"kind": type(result).__name__} | asdict(result))


def result_from(text: str) -> Result:
    """The result that was written; InputError for anything that is none."""
    try:
        data = json.loads(text)
        kind = choose("kind of result", data.pop("kind", None), _KINDS)
        return kind(**data)
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"a result cannot be read: {error}") from None
