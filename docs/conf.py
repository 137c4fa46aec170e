"""The site: pages in Markdown, the gallery, the reference from docstrings. ``make docs`` builds it, offline."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

import gallery
import rannpde

project = "rannpde"
author = "The rannpde developers"
project_copyright = author
version = release = rannpde.__version__
language = "en"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "docstrings",
    "mathtext",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_ext"]
nitpicky = False
suppress_warnings = ["config.cache"]  # functions in the settings of the gallery

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # docstrings say what arguments are, and their shapes
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_",
    "subsection_order": gallery.in_order(
        "evolution", "shapes", "spectrum", "families", "many_dimensions", "inverse", "fitting", "trust", "theory"
    ),
    "within_subsection_order": "FileNameSortKey",
    "image_scrapers": (gallery.own_figures, "matplotlib"),
    "reset_modules": (gallery.our_style,),
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 0,
    "abort_on_example_error": True,
    "download_all_examples": False,
    "plot_gallery": os.environ.get("RANNPDE_GALLERY", "True") == "True",
    "parallel": int(os.environ.get("RANNPDE_GALLERY_WORKERS", "1")),
}
warnings.filterwarnings("ignore", category=rannpde.ConvergenceWarning)

html_theme = "pydata_sphinx_theme"
html_title = "rannpde"
html_static_path = ["_static"]
templates_path = ["_templates"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 8,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright", "glossary-link"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": []}
