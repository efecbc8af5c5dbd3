"""`n_clusters="auto"`: the number that the sketch suggests, with its reason, or an error."""

import numpy as np
import pytest
from sklearn.base import clone

import ckm
from ckm import CompressiveKMeans
from ckm.errors import DataError, ParameterError

K = 4


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    return ckm.datasets.gaussian_mixture(4000, K, 3, separation=15, random_state=3).rows


def _model(**parameters: object) -> CompressiveKMeans:
    return CompressiveKMeans("auto", **({"max_clusters": 8, "random_state": 0} | parameters))


def test_the_number_is_chosen_and_the_reason_kept(rows: np.ndarray) -> None:
    model = _model().fit(rows)
    assert model.cluster_centers_.shape == (K, 3)
    assert model.curve_.suggestion == K
    assert model.curve_.n_clusters[-1] == 8
    assert set(model.labels_) == set(range(K))
    assert model.get_feature_names_out().shape == (K,)
    assert clone(model).get_params()["max_clusters"] == 8


def test_the_fit_is_that_of_the_number(rows: np.ndarray) -> None:
    model = _model().fit(rows)
    again = CompressiveKMeans.from_sketch(model.sketch_, K, random_state=0)
    assert model.inertia_ == pytest.approx(-again.score(rows), rel=0.01)


def test_batches_and_sketches_choose_too(rows: np.ndarray) -> None:
    model = _model()
    for batch in np.array_split(rows, 3):
        model.partial_fit(batch)
    assert len(model.cluster_centers_) == K
    made = CompressiveKMeans.from_sketch(model.sketch_, "auto", max_clusters=8, random_state=0)
    assert len(made.cluster_centers_) == K


def test_no_clear_number_is_an_error_that_keeps_the_sketch() -> None:
    X = np.random.default_rng(0).uniform(size=(5000, 3))
    model = _model()
    with pytest.raises(DataError, match=r"No clear number of clusters.*n_clusters"):
        model.fit(X)
    assert model.curve_.suggestion is None
    made = CompressiveKMeans.from_sketch(model.sketch_, 3, random_state=0)
    assert len(made.cluster_centers_) == 3


def test_a_given_number_has_no_curve(rows: np.ndarray) -> None:
    model = CompressiveKMeans(3, random_state=0).fit(rows)
    with pytest.raises(AttributeError, match="curve_"):
        model.curve_
    model.set_params(n_clusters="auto").fit(rows)
    assert model.curve_.suggestion == K
    assert not hasattr(model.set_params(n_clusters=2).fit(rows), "curve_")


def test_bad_values_are_refused_before_the_pass(rows: np.ndarray) -> None:
    with pytest.raises(ParameterError, match='n_clusters must be "auto"'):
        CompressiveKMeans("many").fit(rows)
    with pytest.raises(ParameterError, match="max_clusters"):
        _model(max_clusters=0).fit(rows)
