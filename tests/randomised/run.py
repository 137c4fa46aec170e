"""A thousand users' problems: ``make randomised COUNT=1000``.

    python tests/randomised/run.py --count 1000 --first 0 --seconds 30 --workers 2 --record build/randomised.jsonl

Prints every defect with its seed and statement as it is found, and a table at the end. One problem again:
``--first SEED --count 1``. Seconds are those of the processor. What is in the record is not done again. The exit code
is 1 where there is a defect.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from long_runs import Record
from randomised.classify import CLASSES, GENERATORS, SOLVED, Classified, classify_many, table


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000, help="number of problems")
    parser.add_argument("--first", type=int, default=0, help="seed of the first")
    parser.add_argument("--seconds", type=float, default=30.0, help="budget of each solve")
    parser.add_argument("--workers", type=int, default=2, help="processes at a time, one thread each")
    parser.add_argument("--record", type=Path, help="file to which each result is added as it comes")
    parser.add_argument(
        "--generator", default="users", choices=list(GENERATORS),
        help="wider: waves, systems in time, small holes, extreme units; mechanics: bodies, cracks, singular points",
    )  # fmt: skip
    parser.add_argument("--show", default="", help=f"also print results of these classes: {', '.join(CLASSES)}")
    chosen = parser.parse_args()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    shown = set(filter(None, chosen.show.split(",")))
    results: list[Classified] = []
    try:
        seeds = range(chosen.first, chosen.first + chosen.count)
        for one in classify_many(seeds, chosen.seconds, chosen.workers, chosen.generator, Record(chosen.record)):
            results.append(one)
            if len(results) % 50 == 0:
                print(counts(results), flush=True)
            if one.defect or one.underestimated or one.outcome in shown:
                print(one, flush=True)
    except KeyboardInterrupt:
        print("interrupted; the table holds what was finished")
    print(table(results))
    print(counts(results))
    return 1 if any(one.defect for one in results) else 0


def counts(results: list[Classified]) -> str:
    solved, defects = (sum(one.outcome == SOLVED for one in results), sum(one.defect for one in results))
    return f"{solved} of {len(results)} solved, {defects} defects"


if __name__ == "__main__":
    sys.exit(main())
