"""What the pages of the guide list is complete, and what they say of defaults is so."""

import re
from pathlib import Path
from typing import Any

from ckm._decoding.solution import Status

DOCS = Path(__file__).parents[2] / "docs"


def read(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def test_every_status_is_explained() -> None:
    text = read("reading-a-status.md")
    for status in Status:
        assert f"| [`{status.value}`](#{status.value})" in text
    explained = re.findall(r"\n### `([a-z-]+)`\n", text)
    assert set(explained) == {status.value for status in Status}


def test_a_default_sketch_is_as_large_as_the_page_says() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", read("choosing-a-size.md"), re.DOTALL)
    assert "# 200 frequencies, 160 cells" in example
    names: dict[str, Any] = {}
    exec(example, names)
    assert (names["s"].frequencies.m, len(names["s"].cells.mass)) == (200, 160)


def test_the_picture_that_moves_needs_no_network() -> None:
    script = (DOCS / "_static" / "sketch.js").read_text(encoding="utf-8")
    addresses = set(re.findall(r"https?://[^\"'` ]+", script))
    assert addresses == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"\bfetch\(|XMLHttpRequest|import\(", script)
