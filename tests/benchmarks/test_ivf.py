"""The benchmark of inverted-file search measures what it says."""

import numpy as np
import pytest

from benchmarks.ivf import (
    KINDS,
    exact_neighbours,
    fill_index,
    measure_recall,
    most_behind,
    train_faiss,
)


@pytest.mark.filterwarnings("ignore:builtin type .* has no __module__:DeprecationWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_recall_is_that_of_the_lists_that_are_scanned(kind):
    faiss = pytest.importorskip("faiss")
    X = KINDS[kind](1050, np.random.default_rng(0))
    queries = X[1000:]
    X = X[:1000]
    nearest = exact_neighbours(faiss, X, queries)
    distances = ((queries[0] - X) ** 2).sum(axis=1)
    assert set(nearest[0]) == set(np.argsort(distances)[:10])
    C = train_faiss(faiss, X, 8, 0)
    index = fill_index(faiss, X, C)
    everything = measure_recall(faiss, index, queries, nearest, 8)
    assert everything == {"recall": 100.0, "scanned": 1000.0}
    labels = ((X[:, None] - C) ** 2).sum(axis=2).argmin(axis=1)
    visited = ((queries[:, None] - C) ** 2).sum(axis=2).argmin(axis=1)
    expected = np.mean(labels[nearest] == visited[:, None])
    assert measure_recall(faiss, index, queries, nearest, 1)["recall"] == pytest.approx(
        100 * expected, abs=1e-9
    )


def test_the_largest_gap_is_reported():
    def row(by, probes, recall):
        return {"by": by, "probes": probes, "recall": recall}

    faiss = [row("faiss", probes, 50.0) for probes in (1, 4, 16, 64)]
    ours = [row("ckm", 1, 51.0), row("ckm", 4, 47.5), row("ckm", 16, 50.0), row("ckm", 64, 49.0)]
    assert most_behind(faiss + ours) == 2.5
