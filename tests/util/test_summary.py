"""What results show of themselves, as text and as HTML."""

from html.parser import HTMLParser

from ckm._util.summary import Shown, Summary

TOWNS = Summary(
    "Towns <of> the map",
    ("town", "share"),
    (("A", "0.25"), ("\x1b[31mB & C", "0.5")),
    ("The rest lives elsewhere.",),
)


class Text(HTMLParser):
    """The text of a page, by the tag that is around it."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, str]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.found.append((self.open[-1], data))


def test_text_aligns_numbers_and_shows_no_control_characters():
    lines = TOWNS.text().splitlines()
    assert lines[0] == "Towns <of> the map"
    assert lines[-1] == "The rest lives elsewhere."
    assert "\x1b" not in TOWNS.text()
    header, *rows = lines[2:5]
    assert {len(line) for line in (header, *rows)} == {len(header)}
    assert header.startswith("town")
    assert header.endswith("share")


def test_html_is_closed_and_escapes_what_it_shows():
    page = Text(TOWNS.html())
    assert not page.open
    assert ("strong", "Towns <of> the map") in page.found
    assert ("td", "0.25") in page.found
    assert ("p", "The rest lives elsewhere.") in page.found


def test_a_result_prints_its_summary():
    class Map(Shown):
        def summary(self) -> Summary:
            return TOWNS

    assert str(Map()) == TOWNS.text()
    assert Map()._repr_html_() == TOWNS.html()
