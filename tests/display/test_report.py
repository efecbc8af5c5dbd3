"""The page that `ckm.report` writes: one file of HTML, with what people ask of it."""

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import ckm
from ckm.errors import MismatchError, OutputError, ParameterError

NAMES = ("age", "income", "<visits> & more")
# Elements of HTML that have no end.
VOID = {"meta", "link", "br", "img", "input", "hr"}


class Page(HTMLParser):
    """A parsed page: balanced, with its text, anchors and attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(text)
        assert self.open == [], "every element ends"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).split())


def rows(seed: int, shift: float = 0.0) -> pa.Table:
    rng = np.random.default_rng(seed)
    labels = rng.choice(3, size=4000, p=[0.6, 0.3, 0.1])
    means = np.array([[30, 20, 5], [60, 25, 5], [40, 70, 9]], float)
    X = means[labels] + rng.normal(size=(4000, 3)) * [4, 4, 1] + [0, shift, 0]
    return pa.table(dict(zip(NAMES, X.T, strict=True)))


@pytest.fixture(scope="module")
def earlier() -> ckm.Sketch:
    return ckm.sketch(rows(0), n_clusters=6, standardize=True, random_state=0)


@pytest.fixture(scope="module")
def now(earlier: ckm.Sketch) -> ckm.Sketch:
    return ckm.sketch(rows(1, shift=6.0), like=earlier)


@pytest.fixture(scope="module")
def html(earlier: ckm.Sketch, now: ckm.Sketch, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("report") / "report.html"
    data = rows(1, shift=6.0)
    found = ckm.report(now, path=path, data=data, compare=earlier, max_clusters=6, title="Us & you")
    assert found == path
    return path.read_text(encoding="utf-8")


def test_it_is_one_small_file_that_needs_nothing_from_outside(html: str) -> None:
    assert len(html.encode()) < 2_000_000
    assert "http" not in html
    for tag, attributes in Page(html).tags:
        assert tag not in ("script", "link", "img", "iframe")
        assert "src" not in attributes
        assert str(attributes.get("href", "#")).startswith("#")


def test_it_says_how_many_how_large_what_and_whether_to_trust(html: str) -> None:
    words = Page(html).words
    assert "Us & you" in words
    assert "3 clusters in 4,000 rows of 3 columns. The clusters are far apart." in words
    assert "The clusters can be relied on." in words
    assert re.search(r"(59|60|61)\.\d% ", words)
    assert "very high income" in words.lower()
    assert "<visits> & more" in words
    assert "The data has changed." in words
    assert "Rows nearest to the centroids" in words


def test_people_who_do_not_see_it_can_use_it(html: str) -> None:
    page = Page(html)
    tags = [tag for tag, _ in page.tags]
    assert tags.count("main") == tags.count("header") == tags.count("nav") == tags.count("h1") == 1
    attributes = dict(page.tags)
    assert attributes["html"]["lang"] == "en"
    images = [a for tag, a in page.tags if tag == "svg"]
    assert images
    assert all(a.get("aria-label") or a.get("aria-hidden") for a in images)
    ids = [a["id"] for _, a in page.tags if "id" in a]
    assert len(ids) == len(set(ids))
    links = {str(a["href"])[1:] for tag, a in page.tags if tag == "a"}
    assert links <= set(ids)
    scrolls = [a for _, a in page.tags if a.get("class") == "scroll"]
    assert all(a["tabindex"] == "0" and a["aria-label"] for a in scrolls)


def test_the_same_sketch_gives_the_same_page(now: ckm.Sketch, tmp_path: Path) -> None:
    solution = ckm.decode(now, 3, random_state=0)
    pages = [ckm.report(now, solution, tmp_path / name, max_clusters=4) for name in "ab"]
    assert pages[0].read_bytes() == pages[1].read_bytes()


@pytest.mark.parametrize("n", [1, 70])
def test_narrow_and_wide_data_without_names(n: int, tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(600, n))
    X[:200, 0] += 15
    sketch = ckm.sketch(X, n_clusters=3, random_state=0)
    solution = ckm.decode(sketch, 2, random_state=0)
    path = ckm.report(sketch, solution, tmp_path / "report.html", max_clusters=3)
    words = Page(path.read_text(encoding="utf-8")).words
    assert "2 clusters in 600 rows" in words
    assert "high [0]" in words
    assert "nan" not in words


def test_a_column_that_decides_everything_is_said_first(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = pa.table({"id": np.arange(3000.0), "age": rng.normal(size=3000), "one": np.ones(3000)})
    named = ["id", "age", "one"]
    sketch = ckm.sketch(table, n_clusters=3, columns=named, random_state=0)
    path = ckm.report(sketch, path=tmp_path / "r.html", n_clusters=3, max_clusters=3)
    words = Page(path.read_text(encoding="utf-8")).words
    assert "Use the clusters with care. One column, id, decides them. They are slices of" in words
    assert "one : It is constant." in words
    profile = ckm.profile(sketch, ckm.decode(sketch, 3, random_state=0))
    np.testing.assert_allclose(profile.deviations[:, 2], 0.0, atol=1e-6)
    np.testing.assert_allclose(profile.deviations[:, 1], 1.0, rtol=0.1)


def test_data_without_clusters_is_not_cut(tmp_path: Path) -> None:
    X = np.random.default_rng(0).uniform(size=(3000, 2))
    sketch = ckm.sketch(X, n_clusters=6, random_state=0)
    path = ckm.report(sketch, path=tmp_path / "report.html", max_clusters=6)
    assert "1 cluster in 3,000 rows" in Page(path.read_text(encoding="utf-8")).words


def test_misuse_is_refused_before_the_work(
    now: ckm.Sketch, earlier: ckm.Sketch, tmp_path: Path
) -> None:
    solution = ckm.decode(now, 3, random_state=0)
    with pytest.raises(ParameterError, match="its own number of clusters"):
        ckm.report(now, solution, tmp_path / "r.html", n_clusters=4)
    with pytest.raises(OutputError, match=r"none/r\.html"):
        ckm.report(now, solution, tmp_path / "none" / "r.html")
    other = ckm.sketch(rows(3), n_clusters=6, random_state=5)
    with pytest.raises(MismatchError, match="different frequencies"):
        ckm.report(now, solution, tmp_path / "r.html", compare=other, max_clusters=2)
