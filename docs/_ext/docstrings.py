"""Our docstrings for numpydoc: lines such as ``points : array (M, n)`` become its section of parameters.

In the source they stay as short as they are; | and * of formulas are kept from being read as markup.
"""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

_ENTRY = re.compile(r"^([a-zA-Z_]\w*(?:, [a-zA-Z_]\w*)*) : (\S.*)$")


def converted(lines: list[str]) -> list[str]:
    """The lines of a docstring with its entries as a section of their own, after the text, before the examples."""
    text: list[str] = []
    entries: list[str] = []
    examples: list[str] = []
    inside = False
    for line in lines:
        entry = _ENTRY.match(line)
        if examples or line.lstrip().startswith(">>>"):
            examples.append(line)
        elif entry:
            inside = True
            for one in re.split(r"; (?=[a-zA-Z_]\w* : )", line):
                name, _, words = one.partition(" : ")
                entries += [f"{name} :", f"    {_plain(words)}"]
        elif inside and line.startswith(" ") and line.strip():
            entries.append(f"    {_plain(line.strip())}")
        else:
            inside = False
            text.append(_plain(line))
    parts = [*text]
    if entries:
        parts += ["", "Parameters", "----------", *entries]
    if examples:
        parts += ["", "Examples", "--------", *examples]
    return parts


def _plain(line: str) -> str:
    """Formulas hold |u|, u* and a_: no substitution, no emphasis, no link is meant."""
    parts = re.split(r"(``[^`]*``)", line)
    escaped = [part if part.startswith("``") else re.sub(r"([|*\\]|(?<=\w)_(?=\W|$))", r"\\\1", part) for part in parts]
    return "".join(escaped)


def process(app: Sphinx, what: str, name: str, obj: object, options: Any, lines: list[str]) -> None:
    lines[:] = converted(lines)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", process, priority=100)  # before numpydoc, which has 500
    return {"parallel_read_safe": True, "parallel_write_safe": True}
