"""Figures as files, and as SVG that can stand in an HTML page next to others."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path

import matplotlib as mpl

from rannpde.io import write_whole
from rannpde.studies.show.figures import Drawing, style

FORMATS = ("svg", "pdf", "png")
_DATELESS = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}


def render(drawing: Drawing, formats: Sequence[str] = FORMATS) -> dict[str, bytes]:
    """The figure in each format; the same bytes for the same data."""
    rendered = {}
    with style(), mpl.rc_context({"svg.hashsalt": drawing.name}):
        drawing.figure.draw_without_rendering()
        drawing.figure.set_layout_engine("none")  # laid out once, not again for each format
        for kind in formats:
            buffer = io.BytesIO()
            drawing.figure.savefig(buffer, format=kind, metadata=_DATELESS[kind])
            rendered[kind] = buffer.getvalue()
    return rendered


def write_figure(name: str, rendered: dict[str, bytes], folder: Path) -> list[Path]:
    """All formats of a figure, each replaced whole."""
    return [write_whole(folder / f"{name}.{kind}", content) for kind, content in rendered.items()]


def inline(drawing: Drawing, svg: bytes) -> str:
    """An <svg> element with ids of its own, a title and a description for those who cannot see it."""
    text = svg.decode()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    text = re.sub(r"<style[^>]*>.*?</style>", "", text, flags=re.S)  # its rules would hold for the whole page
    prefix = f"{drawing.name}-"
    text = re.sub(r'\bid="', f'id="{prefix}', text)
    text = re.sub(r"url\(#", f"url(#{prefix}", text)
    text = re.sub(r'href="#', f'href="#{prefix}', text)
    opening, body = text.split(">", 1)
    width = re.search(r'\bwidth="([\d.]+)pt"', opening)
    opening = re.sub(r'\s(width|height|version|xmlns:xlink|xmlns)="[^"]*"', "", opening)
    body = body.replace("xlink:href=", "href=")
    pixels = float(width.group(1)) * 96 / 72 if width else 600.0
    # never larger than drawn; on narrow screens wide figures scroll rather than shrink until they cannot be read
    size = f' style="width: {pixels:.0f}px; min-width: min({pixels:.0f}px, 40rem)"'
    labels = f'aria-labelledby="{prefix}title" aria-describedby="{prefix}description"'
    words = (
        f'<title id="{prefix}title">{escape(drawing.caption)}</title>'
        f'<desc id="{prefix}description">{escape(drawing.alternative)}</desc>'
    )
    return f'{opening} role="img" {labels}{size}>{words}{body}'
