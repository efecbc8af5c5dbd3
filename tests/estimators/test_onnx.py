"""The ONNX model of a fitted model labels rows as `predict` does."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sklearn.exceptions import NotFittedError

import ckm
from ckm.errors import ParameterError

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

NAMES = ("a", "b", "c")
MEANS = np.array([[0.0, 3.0, 40.0], [9.0, 1.0, 500.0], [3.0, 9.0, 2000.0]])


def rows(count: int, seed: int = 0) -> np.ndarray:
    """Float32 values, which float64 holds exactly."""
    rng = np.random.default_rng(seed)
    X = MEANS[np.arange(count) % 3] * rng.uniform(0.7, 1.4, size=(count, 1))
    return (X + rng.normal(size=(count, 3))).astype(np.float32)


def run(model: Any, X: np.ndarray) -> np.ndarray:
    session = runtime.InferenceSession(model.SerializeToString())
    (labels,) = session.run(["labels"], {"rows": X})
    return labels


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"standardize": True},
        {"log": ["c"], "standardize": "robust"},
        {"metric": "cosine"},
        {"polish": 1},
    ],
    ids=str,
)
def test_labels_are_those_of_predict(options: dict[str, Any]) -> None:
    table = pa.table(dict(zip(NAMES, rows(3000).T, strict=True)))
    model = ckm.CompressiveKMeans(4, random_state=0, **options).fit(table)
    found = ckm.to_onnx(model)
    X = rows(20_000, seed=1)
    many = pa.table(dict(zip(NAMES, X.T, strict=True)))
    assert np.array_equal(run(found, X), model.predict(many))
    assert found.metadata_props[0].value == '["a", "b", "c"]'


def test_solutions_and_float64() -> None:
    X = rows(20_000).astype(np.float64) + 1e6 + np.random.default_rng(1).normal(size=(20_000, 3))
    solution = ckm.decode(ckm.sketch(X, n_clusters=3, random_state=0), 3, random_state=0)
    found = ckm.to_onnx(solution, dtype="float64")
    assert np.array_equal(run(found, X), solution.predict(X))


def test_the_first_of_equally_near_centroids_wins() -> None:
    model = ckm.CompressiveKMeans(3, random_state=0).fit(rows(3000))
    model.cluster_centers_ = np.array([[1.0, 0, 0], [-1.0, 0, 0], [1.0, 0, 0]])
    X = np.array([[0, 5, 5], [3, 0, 0], [-3, 0, 0]], np.float32)
    assert run(ckm.to_onnx(model), X).tolist() == [0, 0, 1]


def test_missing_values_are_labelled_minus_one_or_filled_in() -> None:
    X = rows(3000)
    gaps = X[:6].copy()
    gaps[0, 1] = np.nan
    gaps[1, 2] = np.inf
    labels = run(ckm.to_onnx(ckm.CompressiveKMeans(3, random_state=0).fit(X)), gaps)
    assert (labels[:2] == -1).all()
    assert (labels[2:] >= 0).all()
    imputing = ckm.CompressiveKMeans(3, nan="impute", random_state=0).fit(X)
    some = gaps[[0, 2, 3]]
    assert np.array_equal(run(ckm.to_onnx(imputing), some), imputing.predict(some))


def test_rows_of_zeros_have_no_direction() -> None:
    model = ckm.CompressiveKMeans(3, metric="cosine", random_state=0).fit(rows(3000))
    zeros = np.zeros((2, 3), np.float32)
    assert np.array_equal(run(ckm.to_onnx(model), zeros), model.predict(zeros))


def test_other_models_and_types_are_refused() -> None:
    with pytest.raises(ParameterError, match="not dict"):
        ckm.to_onnx({})
    with pytest.raises(ParameterError, match="not CompressiveGaussianMixture"):
        ckm.to_onnx(ckm.CompressiveGaussianMixture(3))
    with pytest.raises(NotFittedError):
        ckm.to_onnx(ckm.CompressiveKMeans(3))
    model = ckm.CompressiveKMeans(3, random_state=0).fit(rows(1000))
    with pytest.raises(ParameterError, match="neither 'float32' nor 'float64'"):
        ckm.to_onnx(model, dtype="int8")


def test_models_of_categories_are_refused() -> None:
    rows = pa.table({"x": np.arange(300.0), "plan": ["basic", "pro", "free"] * 100})
    solution = ckm.decode(
        ckm.sketch(rows, n_clusters=2, categories=["plan"], columns=["x", "plan"], random_state=0),
        2,
        random_state=0,
    )
    with pytest.raises(ParameterError, match="OneHotEncoder"):
        ckm.to_onnx(solution)
