"""What people see: the site, a report, and results in a notebook, in a real browser."""

from pathlib import Path
from typing import Any

import pytest
from visiting import Visit, visit

pytest.importorskip("playwright")

# Each kind of page of the site once: landing, text, long tables, formulas, generated references.
SITE_PAGES = (
    "index.html",
    "guide.html",
    "sources.html",
    "decoder.html",
    "quality.html",
    "changelog.html",
    "api.html",
    "api/ckm.CompressiveKMeans.html",
    "search.html",
)
MADE_PAGES = ("report", "report of a sketch alone", "notebook")
SCHEMES = ("light", "dark")
WIDTHS = (400, 1400)
# Pages of the site share one style: two looks show every scheme and every width.
LOOKS = (("light", 1400), ("dark", 400))
looks = pytest.mark.parametrize(("scheme", "width"), LOOKS, ids=lambda value: str(value))


def check_look(opened: Visit, path: Path) -> None:
    """No sideways scrolling of the page, and nothing serious for axe-core."""
    opened.open(path)
    assert opened.overflow() <= 0
    assert opened.findings() == []
    assert opened.requests == opened.complaints == []


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", MADE_PAGES)
def test_made_pages_fit_and_are_accessible(
    browser: Any, made: dict[str, Path], name: str, scheme: str, width: int
) -> None:
    with visit(browser, scheme, width) as opened:
        check_look(opened, made[name])


@looks
@pytest.mark.parametrize("name", SITE_PAGES)
def test_pages_of_the_site_fit_and_are_accessible(
    browser: Any, site: Path, name: str, scheme: str, width: int
) -> None:
    with visit(browser, scheme, width) as opened:
        check_look(opened, site / name)


def test_what_is_wrong_with_a_page_is_seen(browser: Any, tmp_path: Path) -> None:
    """Otherwise the other tests would pass whatever pages look like."""
    path = tmp_path / "bad.html"
    path.write_text(
        "<html><body><div style='width: 3000px'>wide</div>"
        "<img src='https://example.invalid/a.png'>"
        "<script>console.error('no'); throw new Error('broken')</script></body></html>",
        encoding="utf-8",
    )
    with visit(browser) as opened:
        opened.open(path)
        assert opened.requests == ["https://example.invalid/a.png"]
        assert any(complaint.endswith("no") for complaint in opened.complaints)
        assert "broken" in opened.complaints
        assert opened.overflow() > 1000
        assert any(finding.startswith("image-alt ") for finding in opened.findings())


def pages_of(site: Path) -> list[Path]:
    """Every page; those that only lead elsewhere have no content."""
    return [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]


def test_every_page_is_quiet_complete_and_stays_at_home(
    browser: Any, site: Path, made: dict[str, Path]
) -> None:
    """No complaint, no request to elsewhere, landmarks, and alternatives of pictures."""
    expected = {"main": 1, "h1": 1, "nav": True, "unnamed": 0, "lang": "en"}
    found: dict[str, dict[str, Any]] = {}
    with visit(browser) as opened:
        for path in [*pages_of(site), made["report"]]:
            opened.open(path)
            found[path.name] = opened.page.evaluate(COUNTS)
        assert opened.complaints == []
        assert opened.requests == []
    assert {name: counts for name, counts in found.items() if counts != expected} == {}


# Landmarks, and pictures of the content that a screen reader cannot name.
COUNTS = """() => {
  const all = selector => [...document.querySelectorAll(selector)];
  const pictures = all('main img, main [role=img]').filter(element => !element.ariaHidden);
  const named = element => element.getAttribute('alt') || element.getAttribute('aria-label')
    || element.getAttribute('aria-labelledby');
  return {
    main: all('main, [role=main]').length,
    h1: all('main h1, header h1').length,
    nav: all('nav, [role=navigation]').length > 0,
    unnamed: pictures.filter(element => !named(element)).length + all('img:not([alt])').length,
    lang: document.documentElement.lang,
  };
}"""


@pytest.mark.parametrize("name", ["index.html", "report"])
def test_the_keyboard_is_enough(browser: Any, site: Path, made: dict[str, Path], name: str) -> None:
    with visit(browser) as opened:
        opened.open(made.get(name, site / name))
        press = opened.page.keyboard.press
        press("Tab")
        first = opened.page.evaluate("document.activeElement.textContent").strip()
        assert first.startswith("Skip to"), "the first stop skips what every page repeats"
        press("Enter")
        press("Tab")
        inside = "document.activeElement.closest('main') !== null"
        assert opened.page.evaluate(inside), "the next stop is in the main part"
        outline = opened.page.evaluate(
            "getComputedStyle(document.activeElement).outlineStyle + "
            "getComputedStyle(document.activeElement).boxShadow"
        )
        assert outline != "nonenone", "the focus is seen"


def test_search_works_from_a_file(browser: Any, site: Path) -> None:
    with visit(browser) as opened:
        opened.open(site / "search.html", "?q=standardize")
        opened.page.wait_for_selector("#search-results li a", timeout=20_000)
        assert opened.requests == opened.complaints == []
