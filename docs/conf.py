"""How Sphinx builds the site: ``make docs``.

Everything that a page needs comes from the packages of the extra ``docs`` and from this repository, so that the build
asks no network and the pages open from files. What is made on the way (the gallery, a page for each public name, the
tables of studies and benchmarks) is ignored by git.
"""

import os
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE / "_extensions"), str(ROOT), str(ROOT / "src")]
os.environ.setdefault("MPLBACKEND", "agg")

import priorshift  # noqa: E402

project = "priorshift"
author = "The priorshift developers"
copyright = author
version = release = priorshift.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.githubpages",
    "sphinx.ext.mathjax",
    "sphinx_gallery.gen_gallery",
    "generated_pages",
]
exclude_patterns = ["_build", "_generated"]
nitpicky = False  # types in docstrings are words, not references

myst_enable_extensions = ["dollarmath", "colon_fence", "attrs_block"]
myst_heading_anchors = 4

# one file of MathJax, which draws formulas as SVG: pages need neither a CDN nor a font
mathjax = Path(find_spec("sphinx-mathjax-offline").origin).parent / "static" / "mathjax" / "tex-svg.js"
mathjax_path = mathjax.name
mathjax3_config = {"svg": {"scale": 0.9}}

autosummary_generate = True
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"  # numpydoc's sections say it in words
numpydoc_class_members_toctree = False
numpydoc_show_class_members = False
templates_path = ["_templates"]

examples = ROOT / "examples"
sphinx_gallery_conf = {
    "examples_dirs": [str(examples)],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"plot_",
    "ignore_pattern": r"__init__\.py",
    "within_subsection_order": "gallery_order.StoryOrder",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "min_reported_time": 1,
    "show_signature": False,
    "doc_module": ("priorshift",),
    "backreferences_dir": None,
    "reset_modules": ("matplotlib",),
    "write_computation_times": False,
}
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")

html_theme = "pydata_sphinx_theme"
html_title = "priorshift"
html_static_path = ["_static", str(mathjax)]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_context = {"default_mode": "auto"}
html_copy_source = False
html_sidebars = {"index": [], "questions": [], "extending": []}
html_theme_options = {
    "logo": {"text": "priorshift"},
    "navbar_align": "left",
    "header_links_before_dropdown": 8,
    "show_nav_level": 2,
    "show_toc_level": 2,
    "navigation_depth": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
