"""Made wide data: unit rows like those of embedding models, and sparse rows like those of texts."""

from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer

# How rows vary within clusters: along 32 directions that all clusters share, whose variance falls
# as 1/j, and in every direction alike; as multiples of the length of a centre.
KINDS = {"low-rank": (0.6, 0.2), "full noise": (0.1, 1.5), "unbalanced": (0.4, 0.8)}
SHARED_DIRECTIONS = 32
_ROWS_AT_ONCE = 50_000
# Words of a text, and how many of them are about its topic.
WORDS = 100
ABOUT_TOPIC = 40
TOPIC_WORDS = 300


class Wide(NamedTuple):
    """Rows, dense or sparse, and the number of the cluster that each was made in."""

    rows: np.ndarray | sparse.csr_matrix
    labels: np.ndarray


def embeddings(N: int, n: int, K: int, kind: str, seed: int, dtype: type = np.float32) -> Wide:
    """N unit rows of n columns around K random directions.

    In "unbalanced" data the shares of clusters fall as 1/k.
    """
    rng = np.random.default_rng(seed)
    along, everywhere = KINDS[kind]
    centres = rng.standard_normal((K, n), np.float32)
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    shares = 1 / np.arange(1, K + 1) if kind == "unbalanced" else np.ones(K)
    labels = rng.choice(K, N, p=shares / shares.sum()).astype(np.int32)
    falling = np.sqrt(1 / np.arange(1, SHARED_DIRECTIONS + 1))
    shared = np.linalg.qr(rng.standard_normal((n, SHARED_DIRECTIONS)))[0].T * falling[:, None]
    shared = (along * shared).astype(np.float32)
    rows = np.empty((N, n), dtype)
    for start in range(0, N, _ROWS_AT_ONCE):
        part = labels[start : start + _ROWS_AT_ONCE]
        x = centres[part]
        x += rng.standard_normal((len(part), SHARED_DIRECTIONS), np.float32) @ shared
        x += everywhere / np.sqrt(n) * rng.standard_normal((len(part), n), np.float32)
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        rows[start : start + _ROWS_AT_ONCE] = x
    return Wide(rows, labels)


def texts(N: int, n: int, K: int, seed: int) -> Wide:
    """TF-IDF of N texts with a vocabulary of n words and K topics: some words of a text are about
    its topic, the others are those of the language, whose frequencies fall as 1/rank.
    """
    rng = np.random.default_rng(seed)
    labels = rng.integers(K, size=N).astype(np.int32)
    frequencies = 1 / np.arange(1, n + 1)
    background = np.cumsum(frequencies / frequencies.sum())
    # A topic has words of medium rank, some of which it shares with others.
    topics = rng.integers(n // 100, n, size=(K, TOPIC_WORDS))
    words = np.searchsorted(background, rng.random((N, WORDS))).clip(max=n - 1)
    which = (rng.random((N, ABOUT_TOPIC)) ** 2 * TOPIC_WORDS).astype(int)
    words[:, :ABOUT_TOPIC] = topics[labels[:, None], which]
    # scikit-learn takes 32-bit indices only.
    starts = np.arange(0, N * WORDS + 1, WORDS, dtype=np.int32)
    columns = words.ravel().astype(np.int32)
    counts = sparse.csr_matrix((np.ones(N * WORDS, np.float32), columns, starts), shape=(N, n))
    counts.sum_duplicates()
    return Wide(TfidfTransformer().fit_transform(counts), labels)
