"""`CompressiveKMeans` agrees with plain NumPy: results, weights, batches, sketches, units."""

import logging
from typing import Any

import numpy as np
import oracle
import pandas as pd
import pytest
from fits import assert_same_fit, distances, model
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

import ckm
from ckm import CompressiveKMeans
from ckm.errors import (
    DataError,
    HeadWarning,
    ParameterError,
)


@pytest.fixture(scope="module")
def fitted(clusters: np.ndarray) -> CompressiveKMeans:
    return model().fit(clusters)


# Against plain NumPy


def test_labels_distances_and_score(clusters: np.ndarray, fitted: CompressiveKMeans) -> None:
    D = distances(clusters, fitted.cluster_centers_)
    assert np.array_equal(fitted.labels_, D.argmin(axis=1))
    assert np.array_equal(fitted.predict(clusters), fitted.labels_)
    np.testing.assert_allclose(fitted.transform(clusters), D, rtol=1e-12)
    assert fitted.inertia_ == pytest.approx((D.min(axis=1) ** 2).sum(), rel=1e-12)
    assert fitted.score(clusters) == -fitted.inertia_
    few = clusters[:20]
    assert -fitted.score(few) == pytest.approx(
        oracle.sse(few.tolist(), fitted.cluster_centers_.tolist()), rel=1e-12
    )


def test_weighted_score(clusters: np.ndarray) -> None:
    w = np.random.default_rng(0).uniform(0, 2, size=len(clusters))
    m = model().fit(clusters, sample_weight=w)
    squares = distances(clusters, m.cluster_centers_).min(axis=1) ** 2
    assert m.inertia_ == pytest.approx(w @ squares, rel=1e-12)
    assert m.score(clusters, sample_weight=w) == -m.inertia_
    expected = oracle.sse(clusters[:9].tolist(), m.cluster_centers_.tolist(), w[:9].tolist())
    assert -m.score(clusters[:9], sample_weight=w[:9]) == pytest.approx(expected, rel=1e-12)


def test_the_clusters_are_found(clusters: np.ndarray) -> None:
    m = model(sketch_size=100, n_init=5).fit(clusters)
    found = m.cluster_centers_[np.argsort(m.cluster_centers_ @ [1.0, 2.0])]
    # Diracs for clusters of width one: the cost itself is off by a few tenths of a standard
    # deviation.
    np.testing.assert_allclose(found, [[0, 0], [12, 0], [0, 12]], atol=0.6)
    assert m.weights_.sum() == pytest.approx(1)
    np.testing.assert_allclose(
        m.weights_, np.bincount(m.labels_, minlength=3) / len(clusters), atol=0.1
    )


def test_fit_predict_and_fit_transform(clusters: np.ndarray, fitted: CompressiveKMeans) -> None:
    assert np.array_equal(model().fit_predict(clusters), fitted.labels_)
    assert np.array_equal(model().fit_transform(clusters), fitted.transform(clusters))


def test_the_estimator_is_sketch_and_decode(
    clusters: np.ndarray, fitted: CompressiveKMeans
) -> None:
    s = ckm.sketch(clusters, n_clusters=3, pool=1000, random_state=0)
    assert fitted.sketch_ == s
    found = ckm.decode(s, 3, random_state=0)
    assert fitted.cluster_centers_.tobytes() == found.centroids.tobytes()
    assert fitted.solution_.cost == found.cost


# Weights


@pytest.mark.parametrize("options", [{}, {"init": "range", "pool": 0}, {"init": "k++"}])
def test_whole_weights_are_repetition(options: dict[str, Any]) -> None:
    X = np.random.default_rng(0).normal(size=(200, 2)) * [1, 5]
    w = np.random.default_rng(1).integers(0, 4, size=200)
    a, b = model(**options).fit(X, sample_weight=w), model(**options).fit(np.repeat(X, w, axis=0))
    assert_same_fit(a, b)
    assert a.sketch_.z.tobytes() == b.sketch_.z.tobytes()
    assert a.inertia_ == pytest.approx(b.inertia_, rel=1e-12)


def test_scaled_weights_change_nothing(clusters: np.ndarray) -> None:
    X = clusters[:500]
    assert_same_fit(
        model().fit(X, sample_weight=np.full(500, 2.0)),
        model().fit(X, sample_weight=np.full(500, 8.0)),
    )


def test_unit_weights_change_nothing(clusters: np.ndarray) -> None:
    X = clusters[:500]
    assert_same_fit(model().fit(X), model().fit(X, sample_weight=np.ones(500)))


# Batches


def test_batches_make_the_sketch_of_the_whole(clusters: np.ndarray) -> None:
    batches = np.array_split(clusters, 4)
    m = model()
    for batch in batches:
        m.partial_fit(batch)
    assert m.sketch_ == ckm.sketch(clusters, n_clusters=3, pool=1000, random_state=0), (
        "the first rows wait, and determine the frequencies together"
    )
    assert m.sketch_.count == len(clusters)
    assert not hasattr(m, "labels_")
    for name, remedy in (("labels_", "predict"), ("inertia_", "score"), ("n_iter_", "polishes")):
        with pytest.raises(
            AttributeError, match=f"This model has no {name}: fit sets it.*{remedy}"
        ):
            getattr(m, name)
    assert np.array_equal(
        m.predict(clusters), distances(clusters, m.cluster_centers_).argmin(axis=1)
    )


def test_batches_are_decoded_when_centroids_are_used(
    clusters: np.ndarray, caplog: pytest.LogCaptureFixture
) -> None:
    def decodings() -> int:
        return sum(record.message.startswith("decoded in") for record in caplog.records)

    caplog.set_level(logging.INFO, "ckm")
    m = model().partial_fit(clusters[:500]).partial_fit(clusters[500:])
    assert decodings() == 0
    m.cluster_centers_, m.weights_, m.solution_, m.predict(clusters)
    assert decodings() == 1
    m.partial_fit(clusters)
    assert decodings() == 1
    with pytest.warns(HeadWarning, match=r"come from the first 2,000 rows.*like="):
        m.weights_
    assert decodings() == 2


def test_the_order_of_batches_changes_the_pool_only(clusters: np.ndarray) -> None:
    first, *rest = np.array_split(clusters, 4)
    a, b = model(init="range", pool=0), model(init="range", pool=0)
    for batch in (first, *rest):
        a.partial_fit(batch)
    for batch in (first, *rest[::-1]):
        b.partial_fit(batch)
    assert a.sketch_ == b.sketch_
    assert_same_fit(a, b)


def test_weighted_batches(clusters: np.ndarray) -> None:
    w = np.random.default_rng(0).integers(0, 3, size=len(clusters))
    m = model()
    for part in np.array_split(np.arange(len(clusters)), 3):
        m.partial_fit(clusters[part], sample_weight=w[part])
    assert m.sketch_ == ckm.sketch(clusters, n_clusters=3, sample_weight=w, random_state=0)


def test_fit_starts_again(clusters: np.ndarray, fitted: CompressiveKMeans) -> None:
    m = model().partial_fit(clusters[:100] * 3)
    assert_same_fit(m.fit(clusters), fitted)
    assert m.sketch_.count == len(clusters)
    m.partial_fit(clusters)
    assert m.sketch_.count == 2 * len(clusters)
    assert not hasattr(m, "inertia_")


# From a sketch


def test_from_sketch(clusters: np.ndarray, fitted: CompressiveKMeans) -> None:
    s = ckm.sketch(clusters, n_clusters=3, pool=1000, random_state=0)
    m = CompressiveKMeans.from_sketch(s, 3, random_state=0)
    assert_same_fit(m, fitted)
    assert np.array_equal(m.predict(clusters), fitted.labels_)
    assert m.n_features_in_ == 2
    assert not hasattr(m, "labels_")
    assert m.sketch_.pool is None
    m.partial_fit(clusters)
    assert m.sketch_ == s + ckm.sketch(clusters, like=s)


def test_from_sketch_knows_names(clusters: np.ndarray) -> None:
    frame = pd.DataFrame(clusters, columns=["east", "north"])
    m = CompressiveKMeans.from_sketch(
        ckm.sketch(frame, n_clusters=3, random_state=0), 3, random_state=0
    )
    assert m.feature_names_in_.tolist() == ["east", "north"]
    m.predict(frame)
    with pytest.raises(ValueError, match="feature names"):
        m.predict(frame.rename(columns={"east": "west"}))


def test_from_sketch_refuses_what_cannot_be_decoded(clusters: np.ndarray) -> None:
    s = ckm.sketch(clusters, n_clusters=3, random_state=0)
    with pytest.raises(DataError, match="zero rows"):
        CompressiveKMeans.from_sketch(ckm.Sketch.empty(s.frequencies), 3)
    frequencies_alone = ckm.sketch(clusters, n_clusters=3, cells=0, random_state=0)
    with pytest.raises(ParameterError, match="too small for 50 clusters"):
        CompressiveKMeans.from_sketch(frequencies_alone, 50)


def test_batches_after_a_sketch_with_another_width(clusters: np.ndarray) -> None:
    m = CompressiveKMeans.from_sketch(
        ckm.sketch(clusters, n_clusters=3, random_state=0), 3, random_state=0
    )
    with pytest.raises(ValueError, match="X has 1 features, but CompressiveKMeans is expecting 2"):
        m.partial_fit(clusters[:, :1])


# Standardised columns


@pytest.mark.parametrize("polish", [0, 2])
def test_standardised_columns_do_not_depend_on_units(clusters: np.ndarray, polish: int) -> None:
    units = np.array([1.0, 1000.0])
    a, b = (model(standardize=True, polish=polish).fit(X) for X in (clusters, clusters * units))
    assert np.array_equal(a.labels_, b.labels_)
    assert b.inertia_ == pytest.approx(a.inertia_)
    assert b.cluster_centers_ == pytest.approx(a.cluster_centers_ * units, rel=1e-4)
    assert np.array_equal(b.predict(clusters * units), b.labels_)
    assert b.score(clusters * units) == pytest.approx(-b.inertia_)
    assert b.transform(clusters * units) == pytest.approx(a.transform(clusters), rel=1e-4)


def test_standard_units_are_those_of_the_columns(clusters: np.ndarray) -> None:
    X = clusters * [1.0, 1000.0]
    m = model(standardize=True).fit(X)
    assert m.sketch_.frequencies.units == pytest.approx(X.std(axis=0))
    nearest = KMeans(3, n_init=5, random_state=0).fit(X / X.std(axis=0))
    assert m.inertia_ == pytest.approx(nearest.inertia_, rel=1e-3)
    again = CompressiveKMeans.from_sketch(m.sketch_, 3, random_state=0)
    assert adjusted_rand_score(again.predict(X), m.labels_) > 0.99
    grown = model(standardize=True).partial_fit(X[:700]).partial_fit(X[700:])
    assert grown.sketch_ == m.sketch_


def test_a_constant_column_has_a_unit(clusters: np.ndarray) -> None:
    X = np.hstack([clusters, np.full((len(clusters), 1), 7.0)])
    m = model(standardize=True).fit(X)
    assert m.sketch_.frequencies.units[2] == 1
    assert m.cluster_centers_[:, 2] == pytest.approx(7)
