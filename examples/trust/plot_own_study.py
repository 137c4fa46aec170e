r"""
A study of one's own
====================

Which activation fits a function best, at which width, with which spread over the seeds? A study is data: curves,
widths and seeds. Finished cells are kept, so that an interrupted run goes on where it stopped. ``rannpde study
file.toml`` runs the same from a file and writes a report.
"""

import os
import tempfile

from rannpde.studies.reproduce import reproduce
from rannpde.studies.run.records import Records
from rannpde.studies.show.analysis import collect
from rannpde.studies.show.chapter import plain_chapter
from rannpde.studies.show.figures import comparison_drawing
from rannpde.studies.toml import parse_study

widths = [8, 16, 32, 64] if "RANNPDE_SMALL" in os.environ else [16, 32, 64, 128, 256]
study = parse_study(
    {
        "name": "own-function",
        "title": "exp(-t) sin(2π x)",
        "widths": widths,
        "seeds": 3,
        "penalty": 1e-10,
        "target": {"kind": "formula", "expression": "exp(-t)*sin(2*pi*x1)", "space_dim": 1},
        "features": {"scale": 3.0, "scaled": True},
        "curves": [
            {"label": "Fourier features"},
            {"label": "tanh, uniform", "features": {"activation": "tanh", "law": "uniform"}},
            {"label": "Fourier, penalty by GCV", "penalty": "gcv"},
        ],
    }
)
with tempfile.TemporaryDirectory() as folder:
    product = reproduce([plain_chapter(study)], folder, heading=study.title, command="a script")
    with Records(product.records) as records:
        series = collect(study, records.find(study.cells))
print(*product.slopes.rows, sep="\n")
figure = comparison_drawing([(study.title, series)], "own", "Error against width.").figure
