"""The open-ended hunt for solutions that say ``converged`` and are wrong: ``make honesty COUNT=5000``.

    python tests/honesty/hunt.py --count 1000 --first 0 --seconds 10 [--families pulse,layer] [--record FILE]

Prints every defect with its seed and statement as it is found, and a table at the end (or at Ctrl-C). A single case
again: ``--first SEED --count 1``, with the same families. Seconds are those of the processor. Each case has a process
of its own, and what is in the record is not done again.
"""

from __future__ import annotations

import argparse
import os
import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import honesty.delicate
import honesty.rough
import honesty.spaces  # noqa: F401 (their families join the others)
from honesty.cases import FAMILIES, OWN_SEEDS, case
from honesty.judge import CRASHED, HUNG, PATIENCE, Tally, Verdict, judge
from long_runs import Endless, Record, Row, run


def verdict_row(seed: int, families: tuple[str, ...], seconds: float) -> Row:
    """What is kept of the case of a seed."""
    row = dict(vars(judge(case(seed, families), seconds)))
    del row["case"]
    return row


def failed(failure: Exception) -> Row:
    """The row of a case whose process gave no answer."""
    word = HUNG if isinstance(failure, Endless) else CRASHED
    return {"words": (word,), "seconds": float("nan"), "told": str(failure)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000, help="cases to try")
    parser.add_argument("--first", type=int, default=0, help="seed of the first")
    parser.add_argument("--step", type=int, default=1, help="from one seed to the next")
    parser.add_argument("--seconds", type=float, default=10.0, help="budget of a solve")
    parser.add_argument("--families", default="", help="comma-separated, or delicate: those with seeds of their own")
    parser.add_argument("--workers", type=int, default=1, help="processes at a time, one thread each")
    parser.add_argument("--record", type=Path, help="file to which each verdict is added as it comes")
    parser.add_argument("--show", default="", help="also print verdicts with one of these words, e.g. 'too small'")
    chosen = parser.parse_args()
    families = tuple(OWN_SEEDS) if chosen.families == "delicate" else tuple(filter(None, chosen.families.split(",")))
    for name in families:
        if name not in FAMILIES | OWN_SEEDS:
            parser.error(f"no family {name!r}; known: {', '.join(FAMILIES | OWN_SEEDS)}")
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    tally, wanted = Tally(), set(filter(None, chosen.show.split(",")))
    seeds = range(chosen.first, chosen.first + chosen.count * chosen.step, chosen.step)
    work = partial(verdict_row, families=families, seconds=chosen.seconds)
    limit = 2 * (chosen.seconds + PATIENCE)
    try:
        rows = run(work, seeds, limit, failed, Record(chosen.record), chosen.workers)
        for number, (seed, row) in enumerate(rows, start=1):
            verdict = Verdict(case(seed, families), **row | {"words": tuple(row["words"])})
            tally.add(verdict)
            if verdict.defect or wanted & set(verdict.words):
                print(verdict, flush=True)
            if number % 100 == 0:
                print(f"{number} tried, {len(tally.defects)} defects", flush=True)
    except KeyboardInterrupt:
        print("interrupted; the tables hold what was finished")
    print(tally.table())
    print(tally.effectivity_table())
    return 1 if tally.defects else 0


if __name__ == "__main__":
    sys.exit(main())
