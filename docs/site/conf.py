"""The documentation as a site: `python -m sphinx -W -c docs/site . build/site`, in the project's folder.

The pages are the project's own Markdown files, where they lie, so that their links hold here and on a host of code.
Three things are made while it builds, in docs/site/made: the functions and classes from their docstrings, the
mechanisms from their objects, and the pictures of the gallery from its blocks of code. See made.py.
"""

import gc
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]
gc.set_threshold(20_000, 20, 20)  # a build takes a tenth less time

import made  # noqa: E402

import attnviz  # noqa: E402

project, author, release = "attnviz", "attnviz maintainers", attnviz.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
root_doc = "docs/index"
include_patterns = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "docs/*.md", "docs/site/made/*"]
include_patterns += ["docs/lessons/*.md", "attnviz/gold/README.md", "attnviz/syntax/README.md", "checkpoints/README.md"]
myst_enable_extensions = ["dollarmath", "attrs_inline"]
myst_heading_anchors = 4
default_role = "code"  # `name` in a docstring
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
html_theme, html_title = "furo", f"attnviz {release}"
html_show_sphinx = html_show_copyright = html_copy_source = False
html_theme_options = {"source_repository": "", "footer_icons": []}
html_theme_options["light_css_variables"] = {"code-font-size": "0.75rem"}  # lines of 100 letters fit; dark ones follow
suppress_warnings = [
    "myst.header",  # a lesson begins with the level that its header has not
    "ref.python",  # two classes have a field of one name
]


html_math_renderer = "mathml"


def setup(app):
    app.add_html_math_renderer("mathml", (made.formula, None), (made.formula, None))
    app.connect("builder-inited", lambda app: made.write(HERE / "made"))
    app.connect("source-read", made.completed)
    app.connect("autodoc-process-docstring", made.as_fields)
    app.connect("build-finished", made.front)
