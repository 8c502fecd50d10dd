"""Configuration of the documentation; `make docs` builds it."""

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.errors import ExtensionError

from unflip import __version__

sys.path.insert(0, str(Path(__file__).parent))
from _reference import with_returns, write_pages

write_pages()

project = "unflip"
author = "The unflip developers"
copyright = author
version = release = __version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = [
    "_build",
    "_templates",
    "auto_examples/**/*.ipynb",
    "reproduction/*.md",  # included by reproduction.md
]
templates_path = ["_templates"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}

# links to headings of a page, [...](page.md#heading)
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence", "dollarmath"]
html_math_renderer = "mathml"  # below

autosummary_generate = True
autodoc_typehints = "none"  # the numpydoc sections have the types
autodoc_member_order = "bysource"
autodoc_default_options = {
    "members": True,
    "inherited-members": "BaseEstimator, ClassifierMixin",
    # scikit-learn's own plumbing, the same in every estimator
    "exclude-members": (
        "get_metadata_routing, get_params, set_params, "
        "set_fit_request, set_predict_request, set_predict_proba_request, set_score_request"
    ),
}
numpydoc_show_class_members = False

# what is copied are the commands: no prompt, and no output
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = f"unflip {release}"
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_copy_source = False
html_show_sphinx = False
html_show_sourcelink = False
html_sidebars = {
    "tutorial": [],
    "benchmarks": [],
    "reproduction": [],
    "changelog": [],
    "contributing": [],
    "maintaining": [],
}
html_theme_options = {
    "logo": {"text": "unflip"},
    "header_links_before_dropdown": 5,
    "navbar_persistent": ["search-button"],
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": {"**": ["page-toc"], "auto_examples/index": []},
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": False,
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}

sphinx_gallery_conf = {
    "examples_dirs": str(Path("..", "examples")),
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"plot_",
    "within_subsection_order": "ExampleTitleSortKey",
    "backreferences_dir": str(Path("reference", "generated", "backreferences")),
    "doc_module": ("unflip",),
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
}

_OPENING_BAR = re.compile(r"(?<!\\)\|(?=\S)")


def escape_bars(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Keep the bars of P(y|x) and |x - c|^2 in docstrings from being read as reST markup."""
    lines[:] = [
        line if line.lstrip().startswith((">>>", "...")) else _OPENING_BAR.sub(r"\\|", line)
        for line in lines
    ]


def say_returns(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Say what a method returns where only the method that it overrides says so."""
    if what == "method":
        lines[:] = with_returns(name, "\n".join(lines)).split("\n")


def skip_ufuncs(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out methods that are ufuncs of numpy or scipy: they have their own documentation."""
    return True if isinstance(obj, np.ufunc) else None


def trim_code(app: Any, doctree: nodes.document) -> None:
    """Drop the blank line that ends the output of a doctest before the closing fence."""
    for block in doctree.findall(nodes.literal_block):
        if block.rawsource == block.astext():  # plain text, to be highlighted
            block.rawsource = block.rawsource.rstrip()
            block.children = [nodes.Text(block.rawsource)]


def visit_inline_math(translator: Any, node: nodes.math) -> None:
    """Write a formula as MathML, which browsers draw without a script from elsewhere."""
    translator.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def visit_display_math(translator: Any, node: nodes.math_block) -> None:
    """Write a formula that has a line of its own."""
    if node["number"]:
        raise ExtensionError(f"numbered formulas are not drawn: {node.astext()}")
    translator.body.append(f'<div class="formula">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> None:
    """Register the hooks."""
    app.add_html_math_renderer("mathml", (visit_inline_math, None), (visit_display_math, None))
    app.connect("doctree-read", trim_code)
    app.connect("autodoc-skip-member", skip_ufuncs)
    app.connect("autodoc-process-docstring", say_returns, priority=400)  # before numpydoc
    app.connect("autodoc-process-docstring", escape_bars)
