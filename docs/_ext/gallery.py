"""What the gallery needs beside sphinx-gallery: our style, figures that pyplot does not know, an order of groups."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any


class in_order:
    """Groups in that order; a class, because the settings are compared and kept between builds."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def __call__(self, folder: str) -> int:
        return self.names.index(Path(folder).name)

    def __repr__(self) -> str:
        return f"<in_order: {self.names}>"


def our_style(gallery_conf: dict[str, Any], fname: str) -> None:
    """Every example begins with the style of the library's own pictures."""
    import matplotlib as mpl

    from rannpde.plotting.style import STYLE

    mpl.rcdefaults()
    mpl.rcParams.update(STYLE | {"axes.labelsize": 11, "axes.titlesize": 11})  # symbols are set smaller than text


def own_figures(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Figures that ``solution.plot()`` gave back under the name ``figure``, and a GIF under the name ``moving``."""
    from matplotlib import pyplot
    from matplotlib.figure import Figure
    from sphinx_gallery.scrapers import figure_rst

    known, paths = block_vars["example_globals"], []
    figure, moving = known.pop("figure", None), known.pop("moving", None)
    if isinstance(moving, Path):
        target = Path(next(block_vars["image_path_iterator"])).with_suffix(".gif")
        shutil.copy(moving, target)
        paths.append(str(target))
    managed = [pyplot.figure(number) for number in pyplot.get_fignums()]  # those are for sphinx-gallery's own scraper
    if isinstance(figure, Figure) and all(figure is not one for one in managed):
        target = Path(next(block_vars["image_path_iterator"]))
        figure.savefig(target, dpi=110)
        paths.append(str(target))
    return figure_rst(paths, gallery_conf["src_dir"])
