"""`CompressiveGaussianMixture` is used as scikit-learn's `GaussianMixture` is."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.mixture import GaussianMixture

import ckm
from ckm import CompressiveGaussianMixture
from ckm._analysis.components import COVARIANCE_TYPES
from ckm._analysis.expectation import Shape
from ckm._analysis.mixture_pass import polish_components
from ckm._sources import open_source
from ckm.errors import ClustersWarning, DataError, ParameterError

FEW = {"pool": 100, "random_state": 0}


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return ckm.datasets.gaussian_mixture(20_000, 3, 2, separation=20, random_state=1).rows


@pytest.fixture(scope="module")
def model(X: np.ndarray) -> CompressiveGaussianMixture:
    return CompressiveGaussianMixture(3, **FEW).fit(X)


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_it_agrees_with_scikit_learn(X: np.ndarray, covariance_type: str) -> None:
    ours = CompressiveGaussianMixture(3, covariance_type=covariance_type, **FEW).fit(X)
    peer = GaussianMixture(3, covariance_type=covariance_type, random_state=0).fit(X)
    for name in ("weights_", "means_", "covariances_", "precisions_"):
        assert getattr(ours, name).shape == getattr(peer, name).shape
    assert ours.score(X) == pytest.approx(peer.score(X), abs=5e-3)
    assert ours.bic(X) == pytest.approx(peer.bic(X), rel=1e-3)
    assert ours.aic(X) == pytest.approx(peer.aic(X), rel=1e-3)
    np.testing.assert_allclose(ours.score_samples(X), peer.score_samples(X), atol=0.5)
    agreement = np.corrcoef(ours.predict_proba(X).max(axis=1), peer.predict_proba(X).max(axis=1))
    assert agreement[0, 1] > 0.95
    assert ours.sample(50)[0].shape == (50, 2)


def test_labels_are_the_most_probable(model: CompressiveGaussianMixture, X: np.ndarray) -> None:
    np.testing.assert_array_equal(model.predict(X), model.predict_proba(X).argmax(axis=1))
    again = CompressiveGaussianMixture(3, **FEW).fit_predict(X)
    np.testing.assert_array_equal(again, model.predict(X))


def test_the_sketch_is_sized_for_the_covariances(X: np.ndarray) -> None:
    sizes = {
        kind: CompressiveGaussianMixture(3, covariance_type=kind, **FEW)
        .fit(X)
        .sketch_.frequencies.m
        for kind in COVARIANCE_TYPES
    }
    assert sizes == {"full": 75, "tied": 45, "diag": 60, "spherical": 45}


def test_a_sketch_gives_the_same_model(model: CompressiveGaussianMixture, X: np.ndarray) -> None:
    found = CompressiveGaussianMixture.from_sketch(model.sketch_, 3, random_state=0)
    np.testing.assert_allclose(found.means_, model.means_, atol=0.05)
    assert found.score(X) == pytest.approx(model.score(X), abs=1e-3)
    assert found.n_components_ == 3


@pytest.mark.filterwarnings("ignore::ckm.errors.HeadWarning")
def test_batches_give_the_sketch_of_all_rows(X: np.ndarray) -> None:
    model = CompressiveGaussianMixture(3, **FEW)
    for batch in np.array_split(X, 4):
        model.partial_fit(batch)
    assert model.sketch_.count == len(X)
    whole = ckm.sketch(X, like=model.sketch_)
    np.testing.assert_array_equal(model.sketch_.z, whole.z)
    before = model.means_
    model.partial_fit(X[:5000])
    assert not np.array_equal(model.means_, before)


def test_polish_is_em_over_the_rows(X: np.ndarray) -> None:
    found = CompressiveGaussianMixture(3, polish=5, **FEW).fit(X)
    peer = GaussianMixture(3, covariance_type="diag", tol=1e-6, random_state=0).fit(X)
    assert 1 <= found.n_iter_ <= 5
    assert found.score(X) == pytest.approx(peer.score(X), abs=1e-4)
    assert found.score(X) >= found.solution_.score(X) - 1e-9


@pytest.mark.parametrize("polish", [0, 3])
def test_polish_helps_where_the_data_is_no_mixture(polish: int) -> None:
    rows = np.random.default_rng(0).uniform(size=(20_000, 2))
    model = CompressiveGaussianMixture(3, polish=polish, **FEW)
    if polish:
        # The passes are the remedy, so that nothing is left to warn of.
        model.fit(rows)
        assert model.score(rows) > model.solution_.score(rows)
        return
    with pytest.warns(ClustersWarning, match="polish"):
        model.fit(rows)


def test_files_give_as_good_a_model(X: np.ndarray, tmp_path) -> None:
    path = tmp_path / "rows.npy"
    np.save(path, X)
    polished = CompressiveGaussianMixture(3, polish=2, **FEW).fit(X)
    found = CompressiveGaussianMixture(3, polish=2, n_jobs=2, **FEW).fit(path)
    # Another sample of the rows chose the frequencies.
    assert found.score(X) == pytest.approx(polished.score(X), abs=1e-3)
    np.testing.assert_array_equal(found.predict(path), found.predict(X))
    assert found.score(path) == found.score(X)


def test_the_division_into_files_changes_no_pass(
    X: np.ndarray, model: CompressiveGaussianMixture, tmp_path
) -> None:
    for i, part in enumerate(np.array_split(X, 3)):
        np.save(tmp_path / f"{i}.npy", part)
    shape = Shape("diag", np.full(2, 1e-6))
    start = model.solution_.components
    files = open_source(sorted(tmp_path.glob("*.npy")))
    apart = polish_components(start, files, shape, 3, n_jobs=2)
    together = polish_components(start, open_source(X), shape, 3, n_jobs=1)
    np.testing.assert_array_equal(apart.components.means, together.components.means)
    assert apart.log_likelihoods == together.log_likelihoods


def test_weights_equal_repetition_in_polish(X: np.ndarray) -> None:
    some = X[:3000]
    weights = np.arange(3000) % 3 + 1
    settings = {"polish": 3, "pool": 0, "random_state": 0}
    weighted = CompressiveGaussianMixture(3, **settings).fit(some, sample_weight=weights)
    repeated = CompressiveGaussianMixture(3, **settings).fit(np.repeat(some, weights, axis=0))
    np.testing.assert_allclose(weighted.means_, repeated.means_, atol=0.02)
    assert weighted.score(some, sample_weight=weights) == pytest.approx(
        repeated.score(np.repeat(some, weights, axis=0)), abs=1e-3
    )


def test_the_number_of_components_can_be_chosen(X: np.ndarray) -> None:
    model = CompressiveGaussianMixture("auto", max_components=6, **FEW).fit(X)
    assert model.n_components_ == 3
    assert model.means_.shape == (3, 2)


def test_names_of_columns_are_kept(X: np.ndarray) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = CompressiveGaussianMixture(3, **FEW).fit(frame)
    assert list(model.feature_names_in_) == ["a", "b"]
    assert "a" in str(model.solution_)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["b", "a"]])


def test_it_clones_and_pickles(model: CompressiveGaussianMixture, X: np.ndarray) -> None:
    assert clone(model).get_params() == model.get_params()
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_before_fit_there_is_nothing() -> None:
    model = CompressiveGaussianMixture(3)
    with pytest.raises(NotFittedError):
        model.predict(np.zeros((2, 2)))
    with pytest.raises(NotFittedError):
        _ = model.n_iter_


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_components": 0}, "n_components"),
        ({"n_components": "some"}, "n_components"),
        ({"covariance_type": "round"}, "covariance_type"),
        ({"reg_covar": -1.0}, "reg_covar"),
        ({"reg_covar": float("nan")}, "reg_covar"),
        ({"sketch_size": 3, "cells": 0, "n_components": 3}, "sketch_size"),
        ({"sketch_size": "large"}, "sketch_size"),
        ({"n_init": 0}, "n_init"),
        ({"pool": -1}, "pool"),
        ({"polish": -1}, "polish"),
        ({"cells": -1}, "cells"),
        ({"n_components": "auto", "max_components": 0}, "max_components"),
        ({"distribution": "flat"}, "flat"),
    ],
)
def test_impossible_parameters_are_refused(X: np.ndarray, given: dict, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        CompressiveGaussianMixture(**({"n_components": 2} | given)).fit(X)


def test_what_cannot_be_fitted_is_refused(X: np.ndarray) -> None:
    with pytest.raises(DataError, match="Sparse input is not supported"):
        CompressiveGaussianMixture(2).fit(sparse.csr_matrix(X[:100]))
    with pytest.raises(DataError, match="too few for n_components=5"):
        CompressiveGaussianMixture(5).fit(X[:3])
    with pytest.raises(ParameterError, match="polish"):
        CompressiveGaussianMixture(2, polish=1).partial_fit(X[:100])
    with pytest.raises(ParameterError, match="takes a Sketch"):
        CompressiveGaussianMixture.from_sketch(X, 3)
    sketch = ckm.sketch(X, n_clusters=3, sketch_size=60, random_state=0)
    with pytest.raises(ParameterError, match="polish"):
        CompressiveGaussianMixture.from_sketch(sketch, 3, polish=1)


def test_a_refused_batch_changes_nothing(X: np.ndarray) -> None:
    model = CompressiveGaussianMixture(3, **FEW).partial_fit(X)
    bad = X[:100].copy()
    bad[5, 1] = np.inf
    with pytest.raises(DataError):
        model.partial_fit(bad)
    assert model.sketch_.count == len(X)
