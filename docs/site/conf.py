"""Settings of Sphinx for the site; ``python -m cute_dialect.tools.docs.site`` makes the pages that it reads."""

from sphinx.application import Sphinx

import cute_dialect
from cute_dialect.tools.docs.site import literal_blocks

project = "cute"
html_title = "cute"
version = release = cute_dialect.__version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
exclude_patterns = ["pictures/**", "atoms/**"]

html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_theme_options = {"footer_icons": []}
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False

myst_heading_anchors = 4  # those that a repository's host makes; a link to one that is missing fails the build
myst_links_external_new_tab = False
suppress_warnings = ["misc.highlighting_failure", "ref.python"]  # ellipses in code; classes of one name

nb_execution_mode = "force"  # a cache would not see that the package has changed
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_mime_priority_overrides = [("html", "image/svg+xml", 0)]  # a file: its colours follow the page's theme

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
python_use_unqualified_type_names = True
add_module_names = False
default_role = "code"


def setup(app: Sphinx) -> None:
    """Render indented blocks of docstrings as code."""

    def process(_app: Sphinx, _what: str, _name: str, _object: object, _options: object, lines: list[str]) -> None:
        lines[:] = literal_blocks("\n".join(lines)).split("\n")

    app.connect("autodoc-process-docstring", process)
