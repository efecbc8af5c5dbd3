"""Formulas as MathML, which browsers render by themselves: no script, no font, no network."""

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx


def _written(formula: str, display: str) -> str:
    # Loaded where there is a formula: a build without any needs no such package.
    from latex2mathml.converter import convert

    return str(convert(formula, display=display))


def _inline(translator: Any, node: nodes.math) -> None:
    translator.body.append(_written(node.astext(), "inline"))
    raise nodes.SkipNode


def _block(translator: Any, node: nodes.math_block) -> None:
    formula = _written(node.astext(), "block")
    # Wide formulas scroll by themselves on a narrow screen, also from the keyboard.
    opening = translator.starttag(node, "div", CLASS="formula", tabindex="0", role="group")
    translator.body.append(f"{opening}{formula}</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer under its own name, and choose it."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    app.config.html_math_renderer = "mathml"  # type: ignore[attr-defined]
    return {"parallel_read_safe": True, "parallel_write_safe": True}
