"""Text in a pipeline: the sparse rows of scikit-learn's vectorizers are clustered as they are."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline

from ckm import CompressiveKMeans

K = 20
# Bytes that a fit of 20 000 x 100 000 with two threads may take beside the rows, most of it sums of
# cells; one copy of the rows that is not sparse would take 8 or 16 GB.
MAX_FIT_BYTES = 800e6


def make_documents(count: int, seed: int = 0, clusters: int = K) -> tuple[list[str], np.ndarray]:
    """Documents of 40 words, half of them of their topic and half of them common, and topics."""
    rng = np.random.default_rng(seed)
    topics = rng.integers(clusters, size=count)
    common = np.minimum(rng.zipf(1.3, size=(count, 20)), 3000)
    own = rng.integers(25, size=(count, 20))
    documents = [
        " ".join([*(f"topic{t}word{i}" for i in own[d]), *(f"common{i}" for i in common[d])])
        for d, t in enumerate(topics)
    ]
    return documents, topics


def test_tfidf_in_a_pipeline():
    documents, topics = make_documents(1500)
    pipeline = make_pipeline(TfidfVectorizer(), CompressiveKMeans(K, random_state=0))
    labels = pipeline.fit_predict(documents)
    rival = make_pipeline(TfidfVectorizer(), KMeans(K, n_init=1, random_state=0)).fit(documents)
    assert adjusted_rand_score(topics, labels) > 0.9
    assert pipeline[-1].inertia_ < 1.005 * rival[-1].inertia_
    assert np.array_equal(pipeline.predict(documents), labels)
    assert pipeline.transform(documents[:3]).shape == (3, K)


def test_centroids_name_the_words_of_a_topic():
    documents, topics = make_documents(800, clusters=8)
    vectorizer = TfidfVectorizer(max_df=0.5)
    rows = vectorizer.fit_transform(documents)
    model = CompressiveKMeans(8, random_state=0).fit(rows)
    words = vectorizer.get_feature_names_out()
    nearest = model.transform(rows).argmin(axis=0)
    for centroid, document in zip(model.cluster_centers_, nearest, strict=True):
        first = words[centroid.argmax()]
        assert first.startswith(f"topic{topics[document]}word")


def test_hashed_words_in_a_pipeline():
    documents, topics = make_documents(1500)
    pipeline = make_pipeline(
        HashingVectorizer(n_features=2**18), CompressiveKMeans(K, random_state=0)
    )
    labels = pipeline.fit_predict(documents)
    assert pipeline[-1].cluster_centers_.shape == (K, 2**18)
    assert adjusted_rand_score(topics, labels) > 0.9
    others, their_topics = make_documents(200, seed=1)
    assert adjusted_rand_score(their_topics, pipeline.predict(others)) > 0.9


def test_hashed_words_arrive_in_batches():
    documents, topics = make_documents(1500)
    vectorizer = HashingVectorizer(n_features=2**12)
    model = CompressiveKMeans(K, random_state=0)
    for start in range(0, 1500, 500):
        model.partial_fit(vectorizer.transform(documents[start : start + 500]))
    assert adjusted_rand_score(topics, model.predict(vectorizer.transform(documents))) > 0.9


@pytest.mark.slow
def test_rows_are_never_made_dense():
    rng = np.random.default_rng(0)
    N, n, words = 20_000, 100_000, 100
    topics = rng.integers(K, size=(N, 1))
    own = 100 * topics + rng.integers(100, size=(N, words // 2))
    columns = np.hstack([own, rng.integers(n, size=(N, words // 2))])
    rows = sparse.csr_matrix(
        (rng.random(N * words), columns.ravel(), words * np.arange(N + 1)), shape=(N, n)
    )
    rows.sum_duplicates()
    tracemalloc.start()
    try:
        model = CompressiveKMeans(K, n_jobs=2, random_state=0).fit(rows)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert adjusted_rand_score(topics[:, 0], model.labels_) > 0.9
    assert peak < MAX_FIT_BYTES
