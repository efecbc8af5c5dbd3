"""Warnings point at the line that called the library, so that they are shown once per line."""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ckm
from ckm.errors import ClustersWarning, ColumnsWarning, HeadWarning


@pytest.fixture
def frame() -> pd.DataFrame:
    return pd.DataFrame(np.random.default_rng(0).normal(size=(200, 2)), columns=["a", "b"]).assign(
        name="x"
    )


def test_warnings_point_at_the_callers_line(frame: pd.DataFrame, tmp_path: Path) -> None:
    frame.to_csv(tmp_path / "x.csv", index=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ckm.sketch(frame, n_clusters=2)
        ckm.sketch(tmp_path / "x.csv", n_clusters=2)
        ckm.CompressiveKMeans(2).fit(tmp_path / "x.csv")
        ckm.sketch(iter([frame.to_numpy()[:, :2].astype(float)] * 20_000), sketch_size=2)
        ckm.CompressiveKMeans(6).fit(np.repeat(np.eye(3), 50, axis=0))
    kinds = [ColumnsWarning] * 3 + [HeadWarning, ClustersWarning]
    assert all(issubclass(w.category, kind) for w, kind in zip(caught, kinds, strict=True))
    assert {w.filename for w in caught} == {__file__}
    assert len({w.lineno for w in caught}) == len(kinds)
