"""Ctrl-C at random times through a pseudo-terminal, as a person presses it: is the result ever lost?

    python tests/fuzz/interrupts.py --count 200

Every time ``rannpde solve`` runs on a problem file in a terminal of its own, Ctrl-C is typed after a random time, and
what comes back is classified: "finished" before it was pressed, "kept" with a saved solution, "nothing yet" where the
command says that there was nothing to keep, or "LOST" for everything else, such as a traceback or no end at all.
"""

from __future__ import annotations

import argparse
import os
import pty
import random
import select
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

PATIENCE = 120.0
"""Seconds by the clock after Ctrl-C at which a command that has not ended is lost: the machine may be busy."""
CTRL_C = b"\x03"

PROBLEMS = {
    "plate": """
equations = ["laplace(u) + u**3 = sin(3*x)*exp(y)"]
[domain]
x = [0, 1.7]
y = [0, 0.9]
[conditions]
boundary = "u = 0"
[solve]
tol = 1e-12
""",
    "rod": """
equations = ["u_t = 0.02*u_xx + u*(1 - u)*(u - 0.3)"]
[domain]
t = [0, 30]
x = [0, 2]
[conditions]
"t=0" = "u = exp(-20*(x - 0.4)**2)"
"x=0" = "u_x = 0"
"x=2" = "u_x = 0"
[solve]
tol = 1e-12
""",
}


def interrupted(folder: Path, problem: str, delay: float) -> tuple[str, str]:
    """Run the command, type Ctrl-C ``delay`` seconds after its first sign of work; how it ended, and what it said."""
    file, saved = folder / f"{problem}.toml", folder / "out" / f"{problem}.npz"
    file.write_text(PROBLEMS[problem], encoding="utf-8")
    saved.unlink(missing_ok=True)
    command = [sys.executable, "-m", "rannpde", "solve", str(file), "--out", str(saved.parent)]
    child, terminal = pty.fork()
    if child == 0:  # the command, whose terminal it is; shells make what they run in the background ignore Ctrl-C
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.execv(command[0], command)
    said, pressed, begin = b"", None, None
    while True:
        ready, _, _ = select.select([terminal], [], [], 0.05)
        try:
            part = os.read(terminal, 65536) if ready else b""
        except OSError:  # the other end was closed
            break
        if ready and not part:
            break
        said += part
        now = time.monotonic()
        begin = now if begin is None and said else begin
        if pressed is None and begin is not None and now > begin + delay:
            os.write(terminal, CTRL_C)
            pressed = now
        if pressed is not None and now > pressed + PATIENCE:
            os.kill(child, 9)
            os.waitpid(child, 0)
            return "LOST", "no end: " + said.decode(errors="replace")[-500:]
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    text = said.decode(errors="replace")
    if pressed is None:
        return "finished", text
    if saved.exists():
        return "kept", text
    code = os.waitstatus_to_exitcode(status)
    silent = text.replace("^C", "").strip() == "" or ("Traceback" in text and "rannpde/pde/" not in text)
    early = code in (130, -2) and silent  # while Python was still loading modules
    return ("nothing yet" if early or "nothing was written" in text else "LOST"), f"exit code {code}: {text[-800:]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200, help="interrupts")
    parser.add_argument("--longest", type=float, default=10.0, help="seconds after which Ctrl-C is typed at the latest")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    rng, tally = random.Random(chosen.seed), Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(chosen.count):
            problem, delay = rng.choice(list(PROBLEMS)), rng.uniform(0.0, chosen.longest)
            outcome, text = interrupted(Path(folder), problem, delay)
            tally[outcome] += 1
            if outcome == "LOST":
                print(f"{number}: {problem} after {delay:.2f} s: {text}", flush=True)
            if (number + 1) % 10 == 0 or number + 1 == chosen.count:
                print(", ".join(f"{name} {count}" for name, count in sorted(tally.items())), flush=True)
    return 1 if tally["LOST"] else 0


if __name__ == "__main__":
    sys.exit(main())
