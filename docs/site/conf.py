"""Settings of Sphinx for the site; ``python -m cute_dialect.tools.gen_site`` makes the pages that it reads."""

import cute_dialect

project = "cute"
html_title = "cute: an open CuTe compiler in Python"
version = release = cute_dialect.__version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
exclude_patterns = ["pictures/**", "atoms/**"]

html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_theme_options = {"footer_icons": []}
html_show_sphinx = False
html_copy_source = False

myst_heading_anchors = 4  # those that a repository's host makes; a link to one that is missing fails the build
myst_links_external_new_tab = False
suppress_warnings = ["misc.highlighting_failure", "ref.python"]  # ellipses in code; classes of one name

nb_execution_mode = "cache"
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_mime_priority_overrides = [("html", "image/svg+xml", 0)]  # a file: its colours follow the page's theme

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
add_module_names = False
default_role = "code"
