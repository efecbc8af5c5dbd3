"""Every example runs as it stands."""

import runpy
import warnings
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))
SLOW = {"drift", "ivf_search", "text_topics"}


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.stem in SLOW else [])
        for path in EXAMPLES
    ],
)
def test_example(path, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # From faiss, on Python 3.12 and newer.
        warnings.filterwarnings("ignore", "builtin type .* has no __module__", DeprecationWarning)
        runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out


def test_there_are_examples():
    assert EXAMPLES
