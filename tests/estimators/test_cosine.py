"""metric="cosine" in the estimator and in solutions: k-means of rows divided by their lengths."""

import pickle
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from fits import distances
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import normalize

import ckm
from ckm import CompressiveKMeans
from ckm._kmeans.assign import Centroids
from ckm._kmeans.polish import polish_centroids
from ckm._sources import open_source
from ckm._sources.unit_rows import unit_rows
from ckm.errors import NonFiniteError, ParameterError

K = 4


def model(**options: Any) -> CompressiveKMeans:
    return CompressiveKMeans(
        **({"n_clusters": K, "metric": "cosine", "random_state": 0, "n_jobs": 1} | options)
    )


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    """Rows in four directions, of lengths from 0.1 to 10."""
    rng = np.random.default_rng(5)
    directions = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [-1, -1, 0]])
    X = directions[rng.integers(K, size=1200)] + 0.1 * rng.normal(size=(1200, 3))
    return X * 10.0 ** rng.uniform(-1, 1, size=(1200, 1))


@pytest.fixture(scope="module")
def fitted(rows: np.ndarray) -> CompressiveKMeans:
    return model().fit(rows)


def test_results_are_those_of_unit_rows(rows: np.ndarray, fitted: CompressiveKMeans) -> None:
    D = distances(unit_rows(rows).astype(float), fitted.cluster_centers_)
    assert np.array_equal(fitted.labels_, D.argmin(axis=1))
    assert np.array_equal(fitted.predict(rows), fitted.labels_)
    np.testing.assert_allclose(fitted.transform(rows), D, rtol=1e-12)
    assert fitted.inertia_ == pytest.approx((D.min(axis=1) ** 2).sum(), rel=1e-12)
    assert fitted.score(rows) == -fitted.inertia_
    best = KMeans(K, n_init=3, random_state=0).fit(normalize(rows))
    assert fitted.inertia_ <= 1.01 * best.inertia_
    assert adjusted_rand_score(fitted.labels_, best.labels_) > 0.99


def test_centroids_are_means_of_unit_rows(rows: np.ndarray) -> None:
    m = model(polish=20).fit(rows)
    unit = unit_rows(rows).astype(float)
    means = [unit[m.labels_ == k].mean(axis=0) for k in range(K)]
    np.testing.assert_allclose(m.cluster_centers_, means, rtol=1e-9, atol=1e-12)
    assert (np.linalg.norm(m.cluster_centers_, axis=1) < 1).all()
    plain = model(polish=20, metric="euclidean").fit(unit_rows(rows))
    assert np.array_equal(m.labels_, plain.labels_)
    # Models of float32 rows have float32 centroids.
    found = m.cluster_centers_.astype(np.float32)
    np.testing.assert_array_equal(found, plain.cluster_centers_)


def test_lengths_of_rows_do_not_matter(rows: np.ndarray, fitted: CompressiveKMeans) -> None:
    for factor in (2.0**-900, 2.0**900):
        m = model().fit(rows * factor)
        assert np.array_equal(m.cluster_centers_, fitted.cluster_centers_)
        assert np.array_equal(m.predict(rows), fitted.labels_)


def test_sparse_rows_give_the_results_of_dense_ones(
    rows: np.ndarray, fitted: CompressiveKMeans
) -> None:
    S = sp.csr_array(rows)
    m = model(polish=2).fit(S)
    dense = model(polish=2).fit(rows)
    assert m.sketch_ == dense.sketch_
    np.testing.assert_allclose(m.cluster_centers_, dense.cluster_centers_, rtol=1e-9)
    assert np.array_equal(fitted.predict(S), fitted.labels_)
    np.testing.assert_allclose(fitted.transform(S), fitted.transform(rows), rtol=1e-9)
    assert fitted.score(S) == pytest.approx(fitted.score(rows), rel=1e-9)


def test_batches_and_files_give_the_same_model(
    rows: np.ndarray, fitted: CompressiveKMeans, tmp_path: Path
) -> None:
    np.save(tmp_path / "X.npy", rows)
    m = model().fit(tmp_path / "X.npy")
    assert m.sketch_ == fitted.sketch_
    assert np.array_equal(m.predict(tmp_path / "X.npy"), m.predict(rows))
    assert m.score(tmp_path / "X.npy") == m.score(rows)
    grown = model().partial_fit(rows[:500]).partial_fit(rows[500:])
    assert grown.sketch_.frequencies.metric == "cosine"
    assert grown.sketch_ == ckm.sketch(rows, like=grown.sketch_)
    fewer = clone(fitted).fit(rows[:500]).partial_fit(rows[500:])
    assert fewer.sketch_ == ckm.sketch(rows, like=fewer.sketch_)


def test_weights_are_repetitions(rows: np.ndarray) -> None:
    beta = np.random.default_rng(0).integers(0, 3, len(rows))
    m = model(polish=1).fit(rows, sample_weight=beta)
    repeated = np.repeat(rows, beta, axis=0)
    assert m.inertia_ == pytest.approx(-m.score(repeated), rel=1e-12)
    np.testing.assert_allclose(
        m.sketch_.z, ckm.sketch(repeated, like=m.sketch_).z, rtol=0, atol=1e-12
    )


def test_a_sketch_brings_its_metric(rows: np.ndarray, fitted: CompressiveKMeans) -> None:
    m = CompressiveKMeans.from_sketch(fitted.sketch_, K, random_state=0)
    assert m.metric == "cosine"
    assert np.array_equal(m.predict(rows), m.solution_.predict(unit_rows(rows)))
    assert m.partial_fit(rows).sketch_ == fitted.sketch_ + fitted.sketch_
    with pytest.raises(ParameterError, match=r"metric='euclidean' is not that of the sketch"):
        CompressiveKMeans.from_sketch(fitted.sketch_, K, metric="euclidean")
    plain = ckm.sketch(rows, n_clusters=K, random_state=0)
    with pytest.raises(ParameterError, match=r"metric='cosine' is not that of the sketch"):
        CompressiveKMeans.from_sketch(plain, K, metric="cosine")
    assert CompressiveKMeans.from_sketch(plain, K, random_state=0).metric == "euclidean"


def test_solutions_measure_unit_rows(rows: np.ndarray, fitted: CompressiveKMeans) -> None:
    solution = ckm.decode(fitted.sketch_, K, random_state=0)
    assert solution.metric == "cosine"
    D = distances(unit_rows(rows).astype(float), solution.centroids)
    assert np.array_equal(solution.predict(rows), D.argmin(axis=1))
    assert np.array_equal(solution.predict(7.5 * rows), D.argmin(axis=1))
    assert solution.score(rows) == pytest.approx(-(D.min(axis=1) ** 2).sum(), rel=1e-12)
    again = pickle.loads(pickle.dumps(solution))
    assert again.score(rows) == solution.score(rows)


def test_labels_of_any_threads_chunks_and_workers(rows: np.ndarray) -> None:
    values = np.random.default_rng(0).normal(size=(K, 3))
    centroids = pickle.loads(pickle.dumps(Centroids(values, metric="cosine")))
    expected = Centroids(values).label(open_source(unit_rows(rows)))
    for n_jobs in (1, 3):
        assert np.array_equal(centroids.label(open_source(rows), n_jobs=n_jobs), expected)
    parts = open_source([rows[:77], rows[77:]])
    assert np.array_equal(centroids.label(parts), expected)
    source = open_source(rows)
    assert np.array_equal(centroids._labeller(source, "error")(source.chunks()), expected)
    summary = centroids.summarise(source)
    assert np.array_equal(summary.counts, np.bincount(expected, minlength=K))
    assert summary.sse.sum() == pytest.approx(centroids.sse(source), rel=1e-12)


# These rows have no clusters, which decoding may say.
@pytest.mark.filterwarnings("ignore::ckm.errors.ClustersWarning")
def test_the_data_is_not_copied() -> None:
    X = np.random.default_rng(0).normal(size=(1_000_000, 8))
    sketch = ckm.sketch(X[:20_000], n_clusters=2, metric="cosine", random_state=0)
    solution = ckm.decode(sketch, 2, random_state=0)
    centroids = Centroids(solution.centroids, metric="cosine")
    uses: list[Callable[[], Any]] = [
        lambda: ckm.sketch(X, n_clusters=2, metric="cosine", random_state=0, n_jobs=2),
        lambda: solution.score(X, n_jobs=2),
        lambda: polish_centroids(centroids, open_source(X), 1, n_jobs=2, progress=False),
    ]
    for use in uses:
        tracemalloc.start()
        use()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < X.nbytes / 2


def test_values_that_are_not_finite(rows: np.ndarray, fitted: CompressiveKMeans) -> None:
    gaps = rows.copy()
    gaps[7] = [1e300, np.nan, 1.0]
    for use in (fitted.predict, fitted.transform, fitted.score, model().fit):
        with pytest.raises((NonFiniteError, ValueError), match=r"Row 7, column 1 .*nan"):
            use(gaps)
    labels = fitted.solution_.predict(gaps, nan="drop")
    assert labels[7] == -1
    assert np.array_equal(np.delete(labels, 7), np.delete(fitted.solution_.predict(rows), 7))


def test_bad_metrics_are_refused(rows: np.ndarray) -> None:
    for use in (CompressiveKMeans.fit, CompressiveKMeans.partial_fit):
        with pytest.raises(ParameterError, match="metric must be 'euclidean' or 'cosine'; got 3"):
            use(model(metric=3), rows)
        with pytest.raises(ParameterError, match=r"metric='cosine' divides .* standardize=True"):
            use(model(standardize=True), rows)


def test_text_in_a_pipeline() -> None:
    rng = np.random.default_rng(0)
    words = [[f"{topic}{i}" for i in range(60)] for topic in "abc"]
    topics = rng.integers(3, size=600)
    texts = [" ".join(rng.choice(words[t], size=rng.integers(5, 60))) for t in topics]
    texts[3] = ""
    pipeline = make_pipeline(TfidfVectorizer(norm=None), model(n_clusters=3))
    labels = pipeline.fit_predict(texts)
    assert adjusted_rand_score(np.delete(topics, 3), np.delete(labels, 3)) > 0.95
    assert np.array_equal(pipeline.predict(texts), labels)
