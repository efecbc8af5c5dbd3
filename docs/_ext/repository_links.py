"""Pages that show files of the repository, and links to such files, which also work where a forge
shows the pages.

A page of the site that shows a file is linked instead of it; other files are copied into the site
as downloads (MyST does that); of a folder, which a site does not have, the text remains.
"""

import os
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# A link or picture with its text, its target and the place in it; not a web address.
LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)#\s:]+)(#[^)\s]*)?\)")
# Pages of the site that show a file of the repository, so that there is one of each.
SHOWN = {
    "changelog": "CHANGELOG.md",
    "contributing": "CONTRIBUTING.md",
    "index": "README.md",
    "measuring": "benchmarks/README.md",
    "security": "SECURITY.md",
}
PAGES = {ROOT / file: DOCS / f"{page}.md" for page, file in SHOWN.items()}
# The gallery, with a page for each of its examples.
GALLERY = ROOT / "examples" / "gallery"
PAGES[GALLERY] = DOCS / "gallery" / "index.rst"
PAGES |= {file: DOCS / "gallery" / f"{file.stem}.rst" for file in GALLERY.glob("plot_*.py")}
TOCTREE = "```{toctree}"


def replaced(link: re.Match[str], written_in: Path, shown_in: Path) -> str:
    """Return a link of a file in one folder as a page in another folder has it."""
    text, target, anchor = link.groups()
    path = (written_in / target).resolve()
    if path.is_dir() and path not in PAGES:
        return text
    page = os.path.relpath(PAGES.get(path, path), shown_in)
    return f"[{text}]({page}{anchor or ''})"


def read_page(app: Sphinx, docname: str, content: list[str]) -> None:
    """Replace the links of one page, and the page, but for its contents, by what it shows."""
    page = Path(app.env.doc2path(docname))
    written_in = page.parent
    if docname in SHOWN:
        file = ROOT / SHOWN[docname]
        app.env.note_dependency(str(file))
        _, mark, contents = content[0].partition(TOCTREE)
        content[0] = f"{file.read_text(encoding='utf-8')}\n{mark}{contents}"
        written_in = file.parent
    if page.suffix == ".md":
        content[0] = LINK.sub(lambda link: replaced(link, written_in, page.parent), content[0])


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect to the reading of pages."""
    app.connect("source-read", read_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
