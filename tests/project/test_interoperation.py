"""The examples of docs/interoperation.md run, and labels are the same in every tool."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

PAGE = Path(__file__).parents[2] / "docs" / "interoperation.md"
NEEDED = ("duckdb", "onnxruntime", "pandas", "polars", "skops")


def test_labels_are_the_same_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in NEEDED:
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for code in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(code, str(PAGE), "exec"), names)
    labels = names["labels"]
    assert names["distances"].shape == (6000, 3)
    assert list(names["distances"].columns) == [f"compressivekmeans{k}" for k in range(3)]
    assert np.array_equal(names["loaded"].predict(names["rides"]), labels)
    in_float32 = names["model"].predict(names["rides"].astype(np.float32))
    assert np.array_equal(names["found"], in_float32)
    assert np.array_equal(names["labelled"]["cluster"].to_numpy(), labels)
    assert names["counts"] == list(enumerate(np.bincount(labels).tolist()))
    names["database"].close()
    names.clear()  # the registered function and the database refer to each other


def test_files_of_skops_hold_no_other_types() -> None:
    skops = pytest.importorskip("skops.io")
    import ckm

    rows = ckm.datasets.gaussian_mixture(1000, 2, 2, separation=20, random_state=0).rows
    for model in (
        ckm.CompressiveKMeans(2, random_state=0).fit(rows),
        ckm.CompressiveGaussianMixture(2, random_state=0).fit(rows),
    ):
        found = skops.get_untrusted_types(data=skops.dumps(model))
        others = [name for name in found if not name.startswith("ckm.")]
        assert set(others) <= {"numpy.dtype"}
        loaded = skops.loads(skops.dumps(model), trusted=found)
        assert np.array_equal(loaded.predict(rows), model.predict(rows))
