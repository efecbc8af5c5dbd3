"""Every example runs as it stands, and each one of the gallery has a title, text and pictures with
titles.
"""

import ast
import runpy
import warnings
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))
GALLERY = sorted((FOLDER / "gallery").glob("plot_*.py"))
SLOW = {"ivf_search"}


def run(path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # From faiss, on Python 3.12 and newer.
        warnings.filterwarnings("ignore", "builtin type .* has no __module__", DeprecationWarning)
        runpy.run_path(str(path), run_name="__main__")


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.stem in SLOW else [])
        for path in EXAMPLES
    ],
)
def test_example(path, capsys):
    run(path)
    assert capsys.readouterr().out


def test_there_are_examples():
    assert EXAMPLES
    assert len(GALLERY) >= 12


# The gallery: `make docs` runs it; here only as a slow test, with fewer rows.


@pytest.mark.slow
@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_an_example_of_the_gallery_runs_and_leaves_nothing(path, capsys, tmp_path, monkeypatch):
    plt = pytest.importorskip("matplotlib.pyplot")
    if path.stem == "plot_polars_duckdb":
        pytest.importorskip("polars")
        pytest.importorskip("duckdb")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CKM_EXAMPLE_ROWS", "1e6")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    plt.switch_backend("agg")
    try:
        run(path)
        figures = [plt.figure(number) for number in plt.get_fignums()]
        assert figures
        for figure in figures:
            titles = [axes.get_title() for axes in figure.axes] + [figure.get_suptitle()]
            assert any(titles), "the title is the alternative text of a picture"
    finally:
        plt.close("all")
    assert capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_an_example_of_the_gallery_reads_as_a_page(path):
    text = path.read_text(encoding="utf-8")
    page = ast.parse(text)
    title, underline, *rest = (ast.get_docstring(page) or "").splitlines()
    assert underline == "=" * len(title)
    assert len(" ".join(rest)) > 80, "an introduction"
    assert text.count("\n# %%\n") >= 1, "text between code"
    assert "plt.show()" in text
    assert "title" in text


@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_an_example_of_the_gallery_uses_public_names_and_no_network(path):
    page = ast.parse(path.read_text(encoding="utf-8"))
    modules = {node.module for node in ast.walk(page) if isinstance(node, ast.ImportFrom)}
    modules |= {a.name for n in ast.walk(page) if isinstance(n, ast.Import) for a in n.names}
    roots = {module.split(".")[0] for module in modules if module}
    assert not roots & {"benchmarks", "experiments", "urllib", "requests", "socket"}
    assert not {module for module in modules if module and module.startswith("ckm._")}
