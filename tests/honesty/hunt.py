"""The open-ended hunt for solutions that say ``converged`` and are wrong: ``make honesty COUNT=5000``.

    python tests/honesty/hunt.py --count 1000 --first 0 --seconds 10 [--families pulse,layer]

Prints every defect with its seed and statement as it is found, and a table at the end (or at Ctrl-C). A single case
again: ``--first SEED --count 1``, with the same families.
"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import honesty.rough
import honesty.spaces  # noqa: F401 (their families join the others)
from honesty.cases import FAMILIES, case
from honesty.judge import Tally, judge


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000, help="cases to try")
    parser.add_argument("--first", type=int, default=0, help="seed of the first")
    parser.add_argument("--step", type=int, default=1, help="from one seed to the next")
    parser.add_argument("--seconds", type=float, default=10.0, help="budget of a solve")
    parser.add_argument("--families", default="", help="comma-separated; all of them by default")
    parser.add_argument("--show", default="", help="also print verdicts with one of these words, e.g. 'too small'")
    chosen = parser.parse_args()
    families = tuple(filter(None, chosen.families.split(",")))
    for name in families:
        if name not in FAMILIES:
            parser.error(f"no family {name!r}; known: {', '.join(FAMILIES)}")
    asked: list[int] = []  # no KeyboardInterrupt: a solve would take it for its own and come back
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: asked.append(number))
    tally, wanted = Tally(), set(filter(None, chosen.show.split(",")))
    for seed in range(chosen.first, chosen.first + chosen.count * chosen.step, chosen.step):
        verdict = judge(case(seed, families), chosen.seconds)
        tally.add(verdict)
        if verdict.defect or wanted & set(verdict.words):
            print(verdict, flush=True)
        if asked:
            break
    print(tally.table())
    print(tally.effectivity_table())
    return 1 if tally.defects else 0


if __name__ == "__main__":
    sys.exit(main())
