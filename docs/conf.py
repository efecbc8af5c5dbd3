"""How Sphinx builds the site: `make docs`, or `make docs-quick` without running the gallery.

The build needs no network. With CKM_DOCS_INVENTORIES=1 the names of scikit-learn, NumPy and
others in the API reference are links to their documentation, whose inventories are then fetched.
"""

import os
import sys
from pathlib import Path

from numpydoc.xref import DEFAULT_LINKS

import ckm

ROOT = Path(__file__).parents[1]

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "ckm"
author = "The ckm developers"
copyright = "the ckm developers; BSD-3-Clause"
version = release = ckm.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
    "numpydoc",
    "mathml",
    "repository_links",
]
root_doc = "index"
exclude_patterns = ["_templates", "gallery/*.ipynb", "gallery/*.py"]
templates_path = ["_templates"]
default_role = "py:obj"  # names in docstrings are links where they are ours

myst_enable_extensions = ["dollarmath", "colon_fence", "html_image"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"  # docstrings say the types
numpydoc_show_class_members = False  # the template of a class lists its methods
# Types in docstrings are links, if they are these; all other words stay text.
numpydoc_xref_param_type = True
numpydoc_xref_ignore = "all"
numpydoc_xref_aliases = {name: f"ckm.{name}" for name in ckm.__all__ if name[0].isupper()} | {
    "RandomState": "numpy.random.RandomState",
    "Generator": "numpy.random.Generator",
    "Figure": "matplotlib.figure.Figure",
}

html_theme = "pydata_sphinx_theme"
html_title = "ckm"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = [("sketch.js", {"defer": "defer"})]  # the picture of what-a-sketch-is
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
html_show_search_summary = False  # pages cannot be fetched from a file
html_context = {"default_mode": "auto"}  # light or dark, as the reader's system is
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "navigation_with_keys": False,
    "collapse_navigation": True,  # the buttons that unfold it have no names for screen readers
}

if not os.environ.get("CKM_DOCS_INVENTORIES"):
    DEFAULT_LINKS.clear()  # numpydoc's own links, to Python and NumPy
else:
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "matplotlib": ("https://matplotlib.org/stable", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "pandas": ("https://pandas.pydata.org/docs", None),
        "sklearn": ("https://scikit-learn.org/stable", None),
    }

sphinx_gallery_conf = {
    "examples_dirs": str(ROOT / "examples" / "gallery"),
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,  # a page with scripts from the network
    "remove_config_comments": True,
    "min_reported_time": 1,
}
