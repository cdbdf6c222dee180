"""Sphinx's settings. `make docs` assembles the sources and builds them; a warning is an error."""

import re
from typing import Any

from sphinx.application import Sphinx

project = "obygaze"
author = "The obygaze maintainers"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
myst_heading_anchors = 4
html_theme = "furo"  # brings its style and scripts along: no request to foreign hosts
html_title = "obygaze"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
autodoc_typehints = "none"  # the docstrings give types and shapes
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
pygments_style = "friendly"


def skip(_app: Sphinx, _kind: str, name: str, _member: Any, skipped: bool, _options: Any) -> bool:
    """Leave out what scikit-learn adds to every estimator; docs/python.md explains metadata routing."""
    return skipped or bool(re.fullmatch(r"set_\w+_request", name))


def setup(app: Sphinx) -> None:
    """Connect what is above."""
    app.connect("autodoc-skip-member", skip)
