"""Masked values are missing: they are refused wherever rows or weights are taken."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ckm
from ckm.errors import DataError

X = np.random.default_rng(0).normal(size=(100, 2))
MASKED = np.ma.masked_greater(X, 2)
WEIGHTS = np.ma.masked_greater(np.abs(X[:, 0]), 1)
MODEL = ckm.CompressiveKMeans(2, random_state=0).fit(X)

USES: dict[str, Callable[..., Any]] = {
    "sketch": lambda rows, **given: ckm.sketch(rows, sketch_size=9, **given),
    "update": lambda rows, **given: ckm.Sketcher(sketch_size=9).update(rows, **given),
    "fit": lambda rows, **given: ckm.CompressiveKMeans(2).fit(rows, **given),
    "partial_fit": lambda rows, **given: ckm.CompressiveKMeans(2).partial_fit(rows, **given),
    "fit_predict": lambda rows, **given: ckm.CompressiveKMeans(2).fit_predict(rows, **given),
    "score": MODEL.score,
}
WITHOUT_WEIGHTS: dict[str, Callable[..., Any]] = {
    "predict": MODEL.predict,
    "transform": MODEL.transform,
    "drop": lambda rows: ckm.sketch(rows, sketch_size=9, nan="drop"),
}


@pytest.mark.parametrize("use", USES | WITHOUT_WEIGHTS)
@pytest.mark.parametrize(
    "rows",
    [MASKED, MASKED.astype(np.float32), list(MASKED), tuple(MASKED), [X, MASKED]],
    ids=["array", "float32", "list of rows", "tuple of rows", "list of batches"],
)
def test_masked_rows_are_refused(use: str, rows: Any) -> None:
    with pytest.raises(DataError, match="has masked values, which are missing; fill them"):
        (USES | WITHOUT_WEIGHTS)[use](rows)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("rows", [X, [X[:50], X[50:]]], ids=["array", "batches"])
@pytest.mark.parametrize("weights", [WEIGHTS, list(WEIGHTS)], ids=["array", "list"])
def test_masked_weights_are_refused(use: str, rows: Any, weights: Any) -> None:
    with pytest.raises(DataError, match="sample_weight has masked values"):
        USES[use](rows, sample_weight=weights)


def test_a_mask_without_masked_values_changes_nothing() -> None:
    rows = np.ma.array(X, mask=False)
    weights = np.ma.array(np.ones(100), mask=False)
    expected = ckm.sketch(X, sketch_size=9, random_state=0)
    assert ckm.sketch(rows, like=expected, sample_weight=weights).weight == expected.weight
    assert ckm.sketch(rows, sketch_size=9, random_state=0) == expected
    assert np.array_equal(MODEL.predict(rows), MODEL.predict(X))
