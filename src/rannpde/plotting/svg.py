"""Panels of a page as SVG: profiles and maps whose pictures are exchanged by setting attributes, and nothing else.

Not matplotlib's SVG: 37 kB for one map, once more for each frame, where a frame is here one attribute.
"""

from __future__ import annotations

import base64
import io
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import matplotlib as mpl
import numpy as np
from matplotlib.ticker import MaxNLocator
from PIL import Image

from rannpde.arrays import Array
from rannpde.plotting.style import COLOURS
from rannpde.plotting.view import Scale, View

SVG_WIDTH, LEFT, TOP, BOTTOM = 360.0, 56.0, 10.0, 40.0
"""Pixels of a panel and around its axes: on a phone it is as wide as the page, so that letters keep their size."""
RIGHT_OF_MAP, RIGHT_OF_PROFILE = 66.0, 12.0
"""Pixels to the right of a map, where its scale of colours is, and of a profile."""
SHADES = 255
"""Colours of a map; one more entry of the palette is for what is outside."""
Update = tuple[str, str]
"""The id of an element and its attribute that changes."""


@dataclass(frozen=True)
class Drawn:
    """An SVG, the attributes that change in it (targets), and their values in each of K frames."""

    svg: str
    targets: tuple[Update, ...] = ()
    frames: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Axes:
    """A rectangle of a panel with the values at its ends."""

    left: float
    top: float
    width: float
    height: float
    x: tuple[float, float]
    y: tuple[float, float]

    def place(self, x: Array, y: Array) -> tuple[Array, Array]:
        """Pixels of values."""
        across = self.left + (np.asarray(x) - self.x[0]) / (self.x[1] - self.x[0]) * self.width
        down = self.top + self.height - (np.asarray(y) - self.y[0]) / (self.y[1] - self.y[0]) * self.height
        return across, down

    @property
    def rectangle(self) -> str:
        """Its attributes in SVG."""
        return f'x="{self.left:g}" y="{self.top:g}" width="{self.width:g}" height="{self.height:g}"'

    def frame_and_ticks(self, names: tuple[str, str]) -> str:
        """The frame, ticks with numbers, and the names of both axes."""
        bottom = self.top + self.height
        parts = [
            f'<rect class="frame" x="{self.left:g}" y="{self.top:g}" width="{self.width:g}" height="{self.height:g}"/>'
        ]
        for value in ticks(*self.x):
            (at,), _ = self.place(np.array([value]), np.array([self.y[0]]))
            parts.append(f'<path class="mark" d="M{at:.1f} {bottom:g}v4"/>')
            parts.append(f'<text x="{at:.1f}" y="{bottom + 16:g}" text-anchor="middle">{number_text(value)}</text>')
        for value in ticks(*self.y):
            _, (at,) = self.place(np.array([self.x[0]]), np.array([value]))
            parts.append(f'<path class="mark" d="M{self.left:g} {at:.1f}h-4"/>')
            parts.append(f'<text x="{self.left - 6:g}" y="{at + 4:.1f}" text-anchor="end">{number_text(value)}</text>')
        middle = self.left + self.width / 2
        parts.append(f'<text x="{middle:g}" y="{bottom + 33:g}" text-anchor="middle">{name_in_svg(names[0])}</text>')
        turned = f"translate(14 {self.top + self.height / 2:g}) rotate(-90)"
        parts.append(f'<text transform="{turned}" text-anchor="middle">{name_in_svg(names[1])}</text>')
        return "".join(parts)


def profile_panel(key: str, across: Array, values: Array, exact: Array | None, names: tuple[str, str]) -> Drawn:
    """Profiles (K, L) over the points (L,), the exact ones dotted beside them; ``key`` makes ids of its own."""
    known = values[np.isfinite(values)] if exact is None else np.concatenate([values.ravel(), exact.ravel()])
    known = known[np.isfinite(known)]
    least, most = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    room = 0.06 * (most - least) or max(abs(most), 1.0) * 0.06
    axes = Axes(LEFT, TOP, SVG_WIDTH - LEFT - RIGHT_OF_PROFILE, 220.0, _ends(across), (least - room, most + room))
    curves = [("line", values, f'stroke="{COLOURS[0]}" stroke-width="2"')]
    if exact is not None:
        curves.append(("exact", exact, 'stroke="#000000" stroke-width="1.2" stroke-dasharray="2 3"'))
    bodies, targets, columns = [], [], []
    for kind, rows, look in curves:
        texts = [_polyline(axes, across, row) for row in rows]
        bodies.append(f'<polyline id="{key}-{kind}" fill="none" {look} points="{texts[0]}"/>')
        targets.append((f"{key}-{kind}", "points"))
        columns.append(texts)
    body = axes.frame_and_ticks(names) + "".join(bodies)
    return _moving(_svg(axes, body, f"{names[1]} over {names[0]}"), targets, columns)


def map_panel(
    key: str,
    views: Sequence[View],
    values: Sequence[Array],
    scale: Scale,
    names: tuple[str, str],
    title: str,
    levels: Array | None = None,
) -> Drawn:
    """Maps (G, G) of one quantity on planes, cut along the boundary, beside their scale of colours.

    levels : heights (K,) of a single map at which a line runs across it, picture by picture
    """
    first = views[0]
    x, y = _ends(first.across), _ends(first.up)
    width = SVG_WIDTH - LEFT - RIGHT_OF_MAP
    same = first.plane != (1, 0)  # lengths in both directions, not length and time
    shape = min(max((y[1] - y[0]) / (x[1] - x[0]), 0.25), 1.6) if same else 0.85
    axes = Axes(LEFT, TOP, width, width * shape, x, y)
    pictures = [picture(rows, scale) for rows in values]
    outlines = [_outline(axes, view) for view in views]
    clip = f' clip-path="url(#{key}-inside)"' if outlines[0] else ""
    body = f'<image id="{key}-map" {axes.rectangle} preserveAspectRatio="none" href="{pictures[0]}"{clip}/>'
    targets, columns = [(f"{key}-map", "href")], [pictures]
    if outlines[0]:
        body = (
            f'<clipPath id="{key}-inside"><path id="{key}-clip" clip-rule="evenodd" d="{outlines[0]}"/></clipPath>'
            + body
        )
        body += f'<path id="{key}-rim" class="rim" d="{outlines[0]}"/>'
        if len(set(outlines)) > 1:
            targets += [(f"{key}-clip", "d"), (f"{key}-rim", "d")]
            columns += [outlines, outlines]
    if levels is not None:
        _, heights = axes.place(np.full(len(levels), x[0]), levels)
        lines = [f"M{axes.left:g} {height:.1f}h{axes.width:g}" for height in heights]
        body += f'<path id="{key}-now" class="now" d="{lines[0]}"/>'
        targets, columns = [(f"{key}-now", "d")], [lines]
    body += axes.frame_and_ticks(names) + _scale_of_colours(axes, scale)
    return _moving(_svg(axes, body, title), targets, columns)


def first_frame(drawn: Drawn) -> Drawn:
    """The panel with its first frame only."""
    return Drawn(drawn.svg)


# ------------------------------------------------------------------------------------------------------ parts


def picture(values: Array, scale: Scale) -> str:
    """A map (G, G), the first row lowest, as the address of a PNG with a palette; NaN is transparent."""
    size = scale.most - scale.least or 1.0
    shades = np.clip((values - scale.least) / size * (SHADES - 1), 0, SHADES - 1)
    indices = np.where(np.isfinite(values), np.nan_to_num(np.round(shades)), SHADES).astype(np.uint8)
    image = Image.fromarray(indices[::-1])
    image.putpalette(_palette(scale.colours))
    return _address(image)


def ticks(lower: float, upper: float) -> list[float]:
    """Four or five round values between two ends.

    >>> [round(tick, 12) for tick in ticks(-1.0, 1.0)]
    [-1.0, -0.5, 0.0, 0.5, 1.0]
    """
    if not upper > lower:
        return [lower]
    slack = 1e-9 * (upper - lower)
    return [
        float(v)
        for v in MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]).tick_values(lower, upper)
        if lower - slack <= v <= upper + slack
    ]


def number_text(value: float) -> str:
    """The number of a tick, short, with a true minus sign."""
    return f"{round(value, 12) + 0.0:.4g}".replace("-", "\N{MINUS SIGN}")


def name_in_svg(name: str) -> str:
    """A name as mathematics in SVG text: Greek letters, slanted letters, digits below the line.

    >>> name_in_svg("nu"), name_in_svg("time")
    ('<tspan font-style="italic">ν</tspan>', 'time')
    """
    stem = name.rstrip("0123456789")
    below = name[len(stem) :]
    letter = greek(stem)
    if len(letter) != 1:
        return escape(name)
    written = f'<tspan font-style="italic">{escape(letter)}</tspan>'
    return written + (f'<tspan dy="3" font-size="75%">{below}</tspan>' if below else "")


def greek(name: str) -> str:
    """The letter of that name, or the name."""
    kind = "SMALL" if name.islower() else "CAPITAL"
    try:
        return unicodedata.lookup(f"GREEK {kind} LETTER {'LAMDA' if name.lower() == 'lambda' else name.upper()}")
    except KeyError:
        return name


def _ends(axis: Array) -> tuple[float, float]:
    return float(axis[0]), float(axis[-1])


def _polyline(axes: Axes, across: Array, row: Array) -> str:
    known = np.isfinite(row)
    x, y = axes.place(across[known], row[known])
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))


def _outline(axes: Axes, view: View) -> str:
    texts = []
    for loop in view.loops:
        x, y = axes.place(*loop.T)
        texts.append("M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(x, y, strict=True)) + "Z")
    return "".join(texts)


def _scale_of_colours(axes: Axes, scale: Scale) -> str:
    bar = Axes(axes.left + axes.width + 10, axes.top, 10.0, axes.height, (0.0, 1.0), (scale.least, scale.most))
    column = Image.fromarray(np.arange(SHADES, dtype=np.uint8)[::-1, None])
    column.putpalette(_palette(scale.colours))
    parts = [f'<image {bar.rectangle} preserveAspectRatio="none" href="{_address(column)}"/>']
    if scale.most > scale.least:
        for value in ticks(scale.least, scale.most):
            _, (at,) = bar.place(np.array([0.0]), np.array([value]))
            parts.append(f'<text x="{bar.left + bar.width + 4:g}" y="{at + 4:.1f}">{number_text(value)}</text>')
    return "".join(parts)


def _palette(name: str) -> list[int]:
    colours = np.zeros((256, 4))
    colours[:SHADES] = mpl.colormaps[name](np.linspace(0, 1, SHADES))
    return [int(part) for part in np.round(255 * colours[:, :3]).ravel()]


def _address(image: Image.Image) -> str:
    buffer = io.BytesIO()
    image.save(buffer, "PNG", transparency=SHADES, optimize=False)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


def _svg(axes: Axes, body: str, title: str) -> str:
    height = axes.top + axes.height + BOTTOM
    return f'<svg role="img" aria-label="{escape(title)}" viewBox="0 0 {SVG_WIDTH:g} {height:.1f}">{body}</svg>'


def _moving(svg: str, targets: Sequence[Update], columns: Sequence[Sequence[str]]) -> Drawn:
    return Drawn(svg, tuple(targets), tuple(zip(*columns, strict=True)))
