"""How Sphinx builds the site: sources are the documents of the whole repository, pages of names are written first.

    python -m sphinx -W --keep-going -c docs . build/site

In: `docs/`, `design/`, `notebooks/` with the output that is stored in them, and the docstrings. Out: HTML in
`build/site`, without network. Sphinx reads this file; `building/` has the parts that are nbgrad's own. The examples of
the gallery run, and fail the build where an assertion of theirs does.
"""

import os
import sys
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # its idle threads would wait in a loop, at the cost of all else

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from numpydoc import docscrape_sphinx  # noqa: E402

import nbgrad  # noqa: E402

project = "nbgrad"
author = "The nbgrad developers"
copyright = "The nbgrad developers"
version = release = nbgrad.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "numpydoc",
    "myst_nb",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "building.api_pages",
    "building.code_blocks",
    "building.every_name",
    "building.short_names",
]
root_doc = "docs/index"
include_patterns = ["docs/**", "design/*.md", "notebooks/*.ipynb", "CHANGELOG.md", "CONTRIBUTING.md", "README.md"]
exclude_patterns = [
    ".*",
    "asv_bench",
    "build",
    "kernels",
    "nbgrad",
    "tests",
    "docs/building",
    "docs/gallery",
    "docs/plots",
    "docs/generated/*/*.ipynb",
]
source_suffix = {".rst": "restructuredtext", ".md": "myst-nb", ".ipynb": "myst-nb"}

# ----- Text -----

default_role = "py:obj"  # `name` in a docstring: a link where there is such a name
nb_execution_mode = "off"  # notebooks/run.py runs them, and compares
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "dollarmath"]
suppress_warnings = ["myst.header", "config.cache"]
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# ----- Names -----

autodoc_typehints = "none"
autodoc_member_order = "alphabetical"
numpydoc_show_class_members = False
python_maximum_signature_line_length = 100
add_module_names = False

# numpydoc compiles its template again for each docstring, which would take a fifth of the build's time.
Environment, environments = docscrape_sphinx.SandboxedEnvironment, {}
docscrape_sphinx.SandboxedEnvironment = lambda loader: environments.setdefault("", Environment(loader=loader))

# ----- Examples that run -----

sphinx_gallery_conf = {
    "examples_dirs": ["docs/gallery", "docs/plots"],
    "gallery_dirs": ["docs/generated/gallery", "docs/generated/plots"],
    "within_subsection_order": "FileNameSortKey",
    "filename_pattern": r"/",
    "ignore_pattern": r"__init__\.py|tables\.py",
    "min_reported_time": 1000,
    "show_memory": False,
    "show_signature": False,
    "plot_gallery": True,
    "remove_config_comments": True,
    "write_computation_times": False,
    "backreferences_dir": None,
    "image_srcset": [],
}

# ----- The look -----

WIDE = "docs/index docs/numpy docs/scipy docs/speed docs/benchmarks docs/real-kernels docs/vector-math".split()
html_theme = "pydata_sphinx_theme"
html_title = "nbgrad"
html_static_path = ["building/static"]
html_extra_path = ["building/root"]
html_css_files = ["nbgrad.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "nbgrad"},
    "show_toc_level": 2,
    "navigation_depth": 2,
    "show_nav_level": 1,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "navbar_persistent": ["search-button"],
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": {"**": ["page-toc"]} | {page: [] for page in WIDE},
}
html_sidebars = dict.fromkeys(("docs/index", "docs/ten-minutes", "design/0*", "CHANGELOG"), ())
