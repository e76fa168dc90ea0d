"""The documentation site: Sphinx with MyST (Markdown) and the theme Furo. `make docs` builds it.

Building and reading it needs no network: the search index is a script, so search works from disk; formulas are MathML;
fonts are the reader's. Pages are Markdown that GitHub shows as well, so links are plain relative links.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import os
import re
from pathlib import Path

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxTranslator
from sphinx.util.inspect import stringify_signature

import uamcts

ROOT = Path(__file__).parents[1]
project, author, release = "uamcts", "The uamcts authors", uamcts.__version__
copyright = author
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["**/*.ipynb"]
nitpicky = False  # annotations name types of JAX and NumPy, which have no pages here
keep_warnings = False

myst_enable_extensions = ["dollarmath", "amsmath", "attrs_inline", "colon_fence"]
myst_heading_anchors = 4
myst_dmath_double_inline = True
suppress_warnings = ["config.cache", "myst.header"]

default_role = "code"  # docstrings are Markdown: `name` is code
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_inherit_docstrings = False
autodoc_typehints = "signature"
autodoc_type_aliases = {
    name: name for name in ("AnyModel", "Legal", "Policy", "Prior", "PRNGKeyArray", "State", "Value")
}
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
python_maximum_signature_line_length = 100
add_module_names = False
toc_object_entries_show_parents = "hide"

pygments_dark_style = "github-dark"
html_theme = "furo"
html_title = f"uamcts {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_show_search_summary = False  # summaries are fetched, which browsers refuse from disk
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
copybutton_exclude = ".linenos, .gp, .go"

ELSEWHERE = {
    "start/notebook": "docs/notebook.ipynb",
    "results/speed": "benchmarks/README.md",
    "api/changelog": "CHANGELOG.md",
}
"""Pages of the site that lie outside of docs/: name on the site, path in the repository."""
PAGES = {**{path: f"docs/{page}.md" for page, path in ELSEWHERE.items()}, "README.md": "docs/index.md"}
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")
COLON = "\ue000"
"""Stands for a colon that Napoleon must not see."""
FENCE = re.compile(r"^( *)```(\w+)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


def follow_links(text: str, path: str, page: str) -> str:
    """The Markdown of the file at `path`, with links as they must be on `page` of the site.

    A link to a file that the site does not have, such as a program, becomes its text alone.
    """

    def follow(match: re.Match[str]) -> str:
        picture, words, target, anchor = match.groups()
        if re.match(r"[a-z]+:", target):
            return match[0]
        there = Path(os.path.normpath(Path(path).parent / target)).as_posix()
        there = PAGES.get(there, there)
        if picture or there.startswith("docs/"):
            return f"{picture}[{words}]({os.path.relpath(there, Path('docs', page).parent)}{anchor or ''})"
        return words

    return LINK.sub(follow, text)


def read_source(app: Sphinx, page: str, source: list[str]) -> None:
    """Reads pages from outside of docs/, and rewrites the links of all pages."""
    path = ELSEWHERE.get(page, f"docs/{page}.md")
    text = source[0]
    if page in ELSEWHERE:
        app.env.note_dependency(str(ROOT / path))
        text = (ROOT / path).read_text()
        text = read_notebook(text) if path.endswith(".ipynb") else text
    source[0] = follow_links(text, path, page)


def read_notebook(text: str) -> str:
    """A notebook as Markdown, with the outputs that are stored in it."""
    blocks = []
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"])
        blocks.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        printed = "".join("".join(output.get("text", "")) for output in cell.get("outputs", ()))
        if printed:
            blocks.append(f"```text\n{printed}\n```")
        for data in [output.get("data", {}) for output in cell.get("outputs", ())]:
            if "text/html" in data:
                blocks.append(f"```{{raw}} html\n{''.join(data['text/html'])}\n```")
            elif "image/png" in data:
                picture = "".join(data["image/png"]).replace("\n", "")
                blocks.append(
                    f'```{{raw}} html\n<img src="data:image/png;base64,{picture}" alt="the figure of this cell">\n```'
                )
    return "\n\n".join(blocks)


def hide_colon(app: Sphinx, kind: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Before Napoleon, which would take what stands in front of the first colon for the type of an attribute."""
    if kind in ("attribute", "data", "property") and lines:
        lines[0] = lines[0].replace(":", COLON)


def convert_docstring(app: Sphinx, kind: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Markdown to reStructuredText, as far as our docstrings need it: code, links to pages, characters to escape."""
    text = "\n".join(lines).replace(COLON, ":")
    text = FENCE.sub(lambda m: f"{m[1]}.. code-block:: {m[2]}\n\n{re.sub('^(?=.)', '   ', m[3], flags=re.M)}", text)
    text = re.sub(r"`?\bdocs/([\w/]+)\.md\b`?", r":doc:`/\1`", text)
    parts = re.split(
        r"((?::doc:)?`[^`]*`|\.\. code-block::.*?\n\n(?=\S|\Z)|^:.*?:|\*\*\w+\*\*)", text, flags=re.M | re.S
    )
    parts[::2] = [re.sub(r"([|*])|(?<=\w)(_)(?!\w)", r"\\\g<0>", part) for part in parts[::2]]
    lines[:] = "".join(parts).split("\n")


def show_signature(
    app: Sphinx, kind: str, name: str, thing: object, options: object, signature: str | None, result: str | None
) -> tuple[str | None, str | None]:
    """The fields of a dataclass that has a `__new__`; names in `autodoc_type_aliases` as they are, also in unions."""
    if dataclasses.is_dataclass(thing) and signature and "*values" in signature:
        fields = inspect.signature(thing.__init__)
        fields = fields.replace(
            parameters=[one for one in fields.parameters.values() if one.name not in ("self", "unset")]
        )
        signature = re.sub(r" -> None$", "", stringify_signature(fields, unqualified_typehints=True))
    return tuple(text and re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", text) for text in (signature, result))


def shorten_types(app: Sphinx, doctree: nodes.document) -> None:
    """`Array` for the class that JAX's arrays have inside of annotations."""
    for text in list(doctree.findall(nodes.Text)):
        if "jaxlib._jax." in text:
            text.parent.replace(text, nodes.Text(text.replace("jaxlib._jax.", "")))


def visit_math(self: SphinxTranslator, node: nodes.math) -> None:
    self.body.append(convert(node.astext()))
    raise nodes.SkipNode


def visit_math_block(self: SphinxTranslator, node: nodes.math_block) -> None:
    self.body.append(f'<div class="math-block">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", read_source)
    app.connect("autodoc-process-docstring", hide_colon, priority=100)
    app.connect("autodoc-process-docstring", convert_docstring, priority=900)
    app.connect("autodoc-process-signature", show_signature)
    app.connect("doctree-read", shorten_types)
    app.add_html_math_renderer("mathml", inline_renderers=(visit_math, None), block_renderers=(visit_math_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


html_math_renderer = "mathml"
