"""Mathematics on the site as SVG by matplotlib's mathtext: no script from elsewhere, no TeX installation."""

from __future__ import annotations

from html import escape
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

from rannpde.plotting.typeset import as_svg, length

_log = logging.getLogger(__name__)


def _written(node: nodes.Element) -> str:
    text = node.astext().replace("\n", " ").strip()
    if length(text) is None:
        _log.warning("mathtext cannot set %r", text, location=node)
        return f"<code>{escape(text)}</code>"
    return as_svg(text, text)


def inline(self: Any, node: nodes.math) -> None:
    self.body.append(f'<span class="formula">{_written(node)}</span>')
    raise nodes.SkipNode


def block(self: Any, node: nodes.math_block) -> None:
    self.body.append(f'<div class="formula">{_written(node)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathtext", (inline, None), (block, None))
    app.config.html_math_renderer = "mathtext"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
