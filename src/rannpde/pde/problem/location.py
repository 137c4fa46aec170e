"""The location in a TOML file that an error message refers to: the entry that it names, and the character of a
statement."""

from __future__ import annotations

import re
from collections.abc import Sequence

MARK = "\n    "
"""Lines of a message that show a statement and the mark below it begin so (``grammar.fail``)."""

_WRONG_KEY = re.compile(r"((?:the file|[\w.-]+) has the key|setting of \w+ is) '([^']+)'")


def locate(message: str, tables: Sequence[str], text: str) -> tuple[int, int] | None:
    """Line and column, from 1, that a message is about; None where that cannot be said.

    tables : the nested tables that the message speaks of, where it does not name them itself

    >>> locate("nu is True, but must be a finite number", ["parameters"], "[parameters]\\nm = 1\\nnu = true\\n")
    (3, 6)
    """
    path, wrong_key = _path(message, tables), _WRONG_KEY.match(message) is not None
    for count in range(len(path), -1, -1):
        span = _entry(path[:count], path[count:], text, wrong_key)
        if span is not None:
            at = _letter(message, text, *span)
            return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    return None


def _path(message: str, tables: Sequence[str]) -> list[str]:
    """The keys, outermost first, of the entry that a message names."""
    unknown = _WRONG_KEY.match(message)
    named = re.search(r"(equation|condition) '([^']+)'", message)
    dotted = re.match(r"([\w-]+(?:\.[\w-]+)*)(?:: ([\w-]+) is )?", message)
    key = re.match(r"(\w+)\['([^']+)'\]", message)
    if unknown and tables:
        return [*tables, unknown[2]]
    if unknown:
        tables = [] if message.startswith("the file") else unknown[1].partition(" ")[0].split(".")
        return [*tables, unknown[2]]
    if key:
        return [*tables, key[1], key[2]]
    if named:
        return [f"{named[1]}s", named[2]]
    return [*tables, *(dotted[1].split(".") if dotted else []), *([dotted[2]] if dotted and dotted[2] else [])]


def _entry(header: list[str], rest: list[str], text: str, wrong_key: bool) -> tuple[int, int] | None:
    """The start and end in the text of the value of ``rest[0] =`` below ``[header]`` (or its key), or of the table."""
    start = 0
    if header:
        inside = r"\s*\.\s*".join(rf"[\"']?{re.escape(part)}[\"']?" for part in header)
        match = re.search(rf"^\s*(\[)\s*{inside}\s*\]", text, re.MULTILINE)
        if match is None:
            return None
        start = match.end()
    after = re.search(r"^\s*\[", text[start:], re.MULTILINE)
    end = start + after.start() if after else len(text)
    if rest:
        matching_key = re.search(
            rf"^[ \t]*([\"']?{re.escape(rest[0])}[\"']?)\s*(=\s*|\.)", text[start:end], re.MULTILINE
        )
        if matching_key is not None:
            return start + (matching_key.start(1) if wrong_key else matching_key.end()), end
    return (match.start(1), end) if header and match else None


def _letter(message: str, text: str, start: int, end: int) -> int:
    """The position of the letter that a mark is under, or of what the message quotes; else where the entry begins."""
    _, *shown = message.split(MARK)
    if len(shown) >= 2 and shown[-1].rstrip().endswith("^"):
        position = text.find(shown[-2], start, end)
        return position + shown[-1].index("^") if position >= 0 else start
    for quoted in re.findall(r"'([^']+)'", message):
        position = text.find(quoted, start, end)
        if position >= 0:
            return position
    return start
