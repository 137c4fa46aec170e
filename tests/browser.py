"""Pages in headless Chromium: what a page measures of itself, in a window of any width."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import escape, unescape
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
]
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed; .ci/run installs it")
OUT = """
  const root = document.documentElement;
  const inside = e => { for (; e; e = e.parentElement) if (e.classList.contains("wide")) return true; return false; };
  const out = [...document.querySelectorAll("body *")].filter(e => !inside(e) && e.tagName !== "PRE"
    && e.getBoundingClientRect().right > root.clientWidth + 1).map(e => e.tagName + "#" + e.id);
  const size = {client: root.clientWidth, scroll: root.scrollWidth};
"""
"""What sticks out of the page on the right (``out``), and how wide it is; what scrolls in a box of its own may."""


def measured(page: str, width: int, folder: Path, script: str, result: str) -> tuple[Any, str]:
    """The value of the JavaScript ``result`` after ``script`` ran in a page of that width, and what the browser said.

    The page stands in a frame of that width: a window has at least 500 pixels.
    """
    assert CHROMIUM is not None
    told = f'parent.document.title = "MEASURED" + JSON.stringify({result});'
    inner = page.replace("</body>", f'<script>addEventListener("load", () => {{{script}{told}}});</script></body>')
    frame = f'<iframe style="width: {width}px; height: 4000px; border: 0" srcdoc="{escape(inner)}"></iframe>'
    outer = folder / "outer.html"
    outer.write_text(f'<!doctype html><meta charset="utf-8"><body style="margin: 0">{frame}', encoding="utf-8")
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={folder / 'profile'}", f"--window-size={max(width, 500)},1000"]
    command += ["--enable-logging=stderr", "--v=0", "--virtual-time-budget=5000", "--dump-dom", outer.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    found = re.search(r"<title>MEASURED(.*?)</title>", done.stdout, re.DOTALL)
    assert found, done.stderr
    return json.loads(unescape(found.group(1))), done.stderr
