"""Rows on a GPU: sums bit-identical to the CPU, wherever rows lie and however they are cut; and
everything else as on the CPU.
"""

import numpy as np
import pytest
from test_kernels import (
    assert_moments_agree,
    assert_same_bits,
    golden_input,
    make_frequencies,
    make_rows,
)

import ckm
from ckm._core.frequencies import Frequencies
from ckm._core.tally import UNIT, Tally
from ckm._kernels import load_kernel
from ckm._kmeans.assign import Centroids
from ckm._kmeans.index import CentroidIndex
from ckm._sources import open_source
from ckm._sources.adapters import Weighted
from ckm._sources.arrays import ArraySource
from ckm.errors import DataError, NonFiniteError

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("there is no GPU", allow_module_level=True)

cpu = load_kernel("cpu").tally
gpu = load_kernel("gpu").tally

SIZES = [
    (1, 7, 300),
    (2, 33, 1000),
    (3, 40, 257),
    (5, 90, 1),
    (10, 1000, 70001),
    (16, 500, 4000),
    (17, 600, 4000),
    (24, 130, 999),
]
SIZES += [(32, 1000, 5000), (33, 300, 3000), (64, 1000, 20000), (64, 4500, 3000), (63, 100, 3000)]


def calm(n: int, m: int, shift: float = 0.0) -> Frequencies:
    """Frequencies whose phases are a turn or so, as those of a sketch are."""
    rng = np.random.default_rng([n, m])
    return Frequencies(
        rng.normal(size=(m, n)) * 0.3 / np.sqrt(n) * rng.uniform(0.3, 3, (m, 1)),
        shift + rng.normal(size=n),
        1.0,
        "gaussian",
    )


def z_of(tally: Tally) -> np.ndarray:
    return (tally.sums[0] - 1j * tally.sums[1]) * (UNIT / tally.weight)


# The same bits


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n", "m", "count"), SIZES)
def test_the_gpu_is_bit_identical_to_the_cpu(
    n: int, m: int, count: int, weighted: bool, dtype: type
) -> None:
    f, X = make_frequencies(n, m, n, 3.0), make_rows(n, count, m, dtype, 3.0)
    beta = np.random.default_rng(m).integers(1, 9, count).astype(np.float64) if weighted else None
    expected = cpu(f, X, beta)
    for rows in (
        X,
        torch.tensor(X, device="cuda"),
        torch.tensor(X.T.copy(), device="cuda").T,
        torch.tensor(X, device="cuda").repeat(1, 2)[:, :n],
    ):
        found = gpu(f, rows, beta)
        assert_same_bits(found, expected)
        assert_moments_agree(found, f, X, np.ones(count) if beta is None else beta)


def test_the_golden_input_has_the_golden_bits() -> None:
    f, X = golden_input()
    assert_same_bits(gpu(f, torch.tensor(X, device="cuda"), None), cpu(f, X, None))


def test_large_phases_and_tiny_numbers_are_bit_identical() -> None:
    rng = np.random.default_rng(0)
    f = Frequencies(
        rng.normal(size=(100, 4)) * 10.0 ** rng.uniform(-40, 5, (100, 4)),
        np.zeros(4),
        1.0,
        "gaussian",
    )
    X = (rng.normal(size=(5000, 4)) * 10.0 ** rng.uniform(-40, 4, (5000, 4))).astype(np.float32)
    assert_same_bits(gpu(f, torch.tensor(X, device="cuda"), None), cpu(f, X, None))


@pytest.mark.parametrize("n", [3, 20, 50])
def test_order_split_and_merge_change_no_bit(n: int) -> None:
    f, X = (
        make_frequencies(n, 200, 1),
        torch.tensor(make_rows(n, 9000, 1, np.float32), device="cuda"),
    )
    whole = gpu(f, X, None)
    assert whole.exact
    shuffled = X[torch.randperm(len(X), device="cuda")]
    parts = [gpu(f, part, None) for part in shuffled.split([1, 255, 256, 257, 4000, 4231])]
    assert_same_bits(sum(parts[1:], parts[0]), whole)


def test_however_rows_come_the_sketch_is_the_same() -> None:
    f, X = make_frequencies(4, 100, 2), make_rows(4, 300_000, 2, np.float32)
    there, expected = torch.tensor(X, device="cuda"), ckm.sketch(X, like=f)
    assert ckm.sketch(there, like=f) == expected
    assert ckm.sketch(X, like=f, device="cuda") == expected
    assert ckm.sketch(torch.tensor(X), like=f) == expected
    assert ckm.sketch(there.split(1000), like=f) == expected
    assert ckm.sketch(lambda: iter(there.split(70_000)), like=f) == expected
    assert ckm.sketch(there.double(), like=f) == expected
    assert ckm.sketch(there[:1000], like=f) + ckm.sketch(X[1000:], like=f) == expected
    assert ckm.Sketcher(like=f).update(there[:5000]).update(X[5000:]).result() == expected


def test_rows_that_another_stream_writes_are_waited_for() -> None:
    f, X = (
        make_frequencies(4, 50, 2),
        torch.tensor(make_rows(4, 200_000, 2, np.float32), device="cuda"),
    )
    expected = ckm.sketch(X, like=f)

    def batches():
        with torch.cuda.stream(torch.cuda.Stream()):
            for part in X.split(50_000):
                torch.cuda._sleep(10_000_000)
                yield part * 2 / 2

    assert ckm.sketch(batches, like=f) == expected


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "int8", "int64", "bool"])
def test_other_numbers(kind: str) -> None:
    f, X = (
        make_frequencies(3, 50, 2),
        torch.randint(0, 2, (1000, 3), device="cuda").to(getattr(torch, kind)),
    )
    assert ckm.sketch(X, like=f) == ckm.sketch(X.cpu().double().numpy(), like=f)


@pytest.mark.parametrize("library", ["cupy", "jax.numpy"])
def test_other_libraries_by_dlpack(library: str) -> None:
    xp = pytest.importorskip(library)
    f, X = make_frequencies(3, 50, 2), make_rows(3, 1000, 2, np.float32)
    assert ckm.sketch(xp.asarray(X), like=f) == ckm.sketch(X, like=f)


# Through the matrix units


@pytest.mark.parametrize(
    ("n", "shift"), [(65, 0.0), (100, 1e3), (256, 0.0), (256, 1e6), (1000, 0.0), (1024, 1e4)]
)
@pytest.mark.parametrize("weighted", [False, True])
def test_many_columns_agree_to_a_millionth(n: int, shift: float, weighted: bool) -> None:
    f, count = calm(n, 300, shift), 50_000
    X = (
        torch.randn(
            count,
            n,
            dtype=torch.float64,
            device="cuda",
            generator=torch.Generator("cuda").manual_seed(n),
        )
        + shift
    )
    beta = np.random.default_rng(n).uniform(0.5, 3, count) if weighted else None
    found, expected = gpu(f, X, beta), load_kernel("torch").tally(f, X, beta)
    assert not found.exact
    assert np.abs(z_of(found) - z_of(expected)).max() <= 1e-6
    assert np.array_equal(found.lower, expected.lower)
    assert np.array_equal(found.upper, expected.upper)
    np.testing.assert_allclose(found.first, expected.first, rtol=0, atol=1e-10 * count)
    both = found + cpu(f, X[:100].cpu().numpy(), None)
    assert both.count == count + 100


@pytest.mark.parametrize("weighted", [False, True])
def test_a_gpu_with_little_shared_memory_agrees_too(weighted: bool) -> None:
    from ckm._kernels.gpu import launch

    count = 50_000
    f = calm(300, 300, 10.0)
    random = torch.Generator("cuda").manual_seed(300)
    X = torch.randn(count, 300, dtype=torch.float64, device="cuda", generator=random) + 10.0
    beta = np.random.default_rng(300).uniform(0.5, 3, count) if weighted else None
    there = None if beta is None else torch.tensor(beta, device="cuda")
    sums, _ = launch.split_sums(f, X, there, launch.SMALL).collected()
    expected = load_kernel("torch").tally(f, X, beta)
    z = (sums[0] - 1j * sums[1]) * (UNIT / expected.weight)
    assert np.abs(z - z_of(expected)).max() <= 1e-6


def test_columns_of_any_unit_and_outliers_agree_to_a_millionth() -> None:
    units = 10.0 ** np.linspace(-8, 8, 100)
    f = calm(100, 200)
    f = Frequencies(f.turns / units, f.origin * units, 1.0, "gaussian")
    X = torch.randn(50_000, 100, dtype=torch.float64, device="cuda") * torch.tensor(
        units, device="cuda"
    )
    X[7, 5] *= 1000
    assert (
        np.abs(z_of(gpu(f, X, None)) - z_of(load_kernel("torch").tally(f, X, None))).max() <= 1e-6
    )


def test_structured_frequencies_agree_to_a_millionth() -> None:
    X = np.random.default_rng(0).normal(size=(20_000, 100)).astype(np.float32)
    there, here = (
        ckm.sketch(rows, sketch_size=300, distribution="structured", cells=0, random_state=0)
        for rows in (torch.tensor(X, device="cuda"), X)
    )
    assert there.frequencies == here.frequencies
    assert not there.exact
    assert np.abs(there.z - here.z).max() <= 1e-6
    assert (there + here).count == 40_000


# What is refused


def test_a_missing_value_is_refused_with_its_place() -> None:
    X = make_rows(5, 500_000, 1, np.float32).copy()
    X[345_678, 3] = np.nan
    f, there = make_frequencies(5, 30, 1), torch.tensor(X, device="cuda")
    with pytest.raises(NonFiniteError, match="Row 345678, column 3 holds NaN"):
        ckm.sketch(there, like=f)
    with pytest.raises(NonFiniteError, match="Row 345678, column 3 holds NaN"):
        ckm.sketch(there, n_clusters=3)
    with pytest.warns(ckm.errors.MissingRowsWarning, match="Left out 1 of"):
        assert ckm.sketch(there, like=f, nan="drop") == ckm.sketch(
            np.delete(X, 345_678, axis=0), like=f
        )
    X[345_678, 3] = np.inf
    with pytest.raises(NonFiniteError, match="infinity"):
        ckm.sketch(torch.tensor(X, device="cuda"), like=f)


def test_a_tensor_must_be_a_table() -> None:
    with pytest.raises(DataError, match="shape"):
        ckm.sketch(torch.zeros(5, device="cuda"), n_clusters=2)
    with pytest.raises(DataError, match="complex"):
        ckm.sketch(torch.zeros((5, 2), device="cuda", dtype=torch.complex64), n_clusters=2)
    with pytest.raises(DataError, match="to_dense"):
        ckm.sketch(torch.zeros((5, 2), device="cuda").to_sparse(), n_clusters=2)
    with pytest.raises(DataError, match="one weight for each row"):
        ckm.sketch(torch.zeros((5, 2), device="cuda"), n_clusters=2, sample_weight=np.ones(4))


# The estimator


def rows_in_clusters(count: int, K: int = 5, n: int = 4) -> np.ndarray:
    return ckm.datasets.gaussian_mixture(count, K, n, random_state=3).rows.astype(np.float32)


def test_fit_predict_and_score_on_the_gpu() -> None:
    X = rows_in_clusters(100_000)
    there = torch.tensor(X, device="cuda")
    model, other = (
        ckm.CompressiveKMeans(n_clusters=5, random_state=0, cells=0, pool=0).fit(rows)
        for rows in (there, X)
    )
    assert model.sketch_ == other.sketch_
    np.testing.assert_array_equal(model.cluster_centers_, other.cluster_centers_)
    assert model.labels_.device == there.device
    np.testing.assert_array_equal(model.labels_.cpu().numpy(), other.labels_)
    assert abs(model.inertia_ / other.inertia_ - 1) < 1e-12
    assert torch.equal(model.predict(there), model.labels_)
    assert abs(model.score(there) / other.score(X) - 1) < 1e-12
    np.testing.assert_allclose(
        model.transform(there[:50]).cpu().numpy(), other.transform(X[:50]), rtol=1e-6
    )
    assert torch.equal(
        ckm.CompressiveKMeans(n_clusters=5, random_state=0, cells=0, pool=0).fit_predict(there),
        model.labels_,
    )


def test_fit_with_a_pool_weights_units_and_polish() -> None:
    X = rows_in_clusters(50_000) * np.array([1, 10, 100, 1000], np.float32)
    beta = np.random.default_rng(0).integers(0, 3, len(X)).astype(np.float64)
    there, options = (
        torch.tensor(X, device="cuda"),
        {"n_clusters": 5, "random_state": 0, "standardize": True, "polish": 2},
    )
    for weights in (beta, torch.tensor(beta, device="cuda")):
        model = ckm.CompressiveKMeans(**options).fit(there, sample_weight=weights)
        other = ckm.CompressiveKMeans(**options).fit(X, sample_weight=beta)
        assert model.inertia_ <= 1.01 * other.inertia_
        assert abs(model.weights_.sum() - 1) < 1e-12


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_unit_rows_are_fitted_as_on_the_cpu(dtype: torch.dtype) -> None:
    there = torch.tensor(rows_in_clusters(50_000), device="cuda").to(dtype)
    there[17] = 0
    X = there.cpu().numpy()
    options = {"n_clusters": 5, "random_state": 0, "metric": "cosine", "cells": 0, "pool": 0}
    model = ckm.CompressiveKMeans(**options).fit(there)
    other = ckm.CompressiveKMeans(**options).fit(X)
    assert model.sketch_ == other.sketch_
    found = model.solution_
    np.testing.assert_array_equal(found.predict(there).cpu().numpy(), found.predict(X))
    assert abs(found.score(there) / found.score(X) - 1) < 1e-12


def test_a_pool_is_the_rows_with_known_chances() -> None:
    X = rows_in_clusters(200_000)
    s = ckm.sketch(torch.tensor(X, device="cuda"), n_clusters=5, pool=1000, random_state=0)
    assert s.pool is not None
    assert (len(s.pool), s.pool.seen) == (1000, 200_000)
    known = {row.tobytes() for row in X}
    assert all(row.astype(np.float32).tobytes() in known for row in s.pool.rows)
    estimate = s.pool.estimate()
    assert abs(estimate.weights.sum() / 200_000 - 1) < 0.15


@pytest.mark.parametrize(
    ("n", "K"), [(1, 1), (2, 3), (7, 130), (16, 33), (17, 33), (40, 17), (64, 300)]
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_labels_are_those_of_distances_in_float64(n: int, K: int, dtype: torch.dtype) -> None:
    rng = np.random.default_rng([n, K])
    X, C = (
        torch.tensor(rng.normal(size=(5000, n)), device="cuda", dtype=dtype),
        rng.normal(size=(K, n)),
    )
    C[K // 2] = C[0]  # of equals, the first
    X[: K // 2] = torch.tensor((C[: K // 2] + C[-(K // 2) or K :]) / 2, dtype=dtype)  # halfway
    labels, sse = Centroids(C).assign(open_source(X))
    expected, other = Centroids(C).assign(ArraySource(X.cpu().numpy()))
    np.testing.assert_array_equal(labels.cpu().numpy(), expected)
    assert sse == pytest.approx(other, rel=1e-12)


@pytest.mark.parametrize("n", [5, 30])
def test_weighted_distances_and_labels_of_batches(n: int) -> None:
    rng = np.random.default_rng(n)
    X = rng.normal(size=(5000, n)).astype(np.float32)
    C = rng.normal(size=(20, n))
    beta = rng.gamma(1.0, size=5000)
    there = torch.tensor(X, device="cuda")
    labels, sse = Centroids(C).assign(Weighted(open_source(there), beta))
    expected, other = Centroids(C).assign(ArraySource(X, weights=beta))
    np.testing.assert_array_equal(labels.cpu().numpy(), expected)
    assert sse == pytest.approx(other, rel=1e-12)
    labels, _ = Centroids(C).assign(open_source(there.split(700)))
    np.testing.assert_array_equal(labels.cpu().numpy(), expected)


@pytest.mark.parametrize("n", [5, 30])
@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_a_row_without_a_nearest_centroid_is_named(n: int, value: float) -> None:
    X = np.ones((5000, n), np.float32)
    X[4321, 2] = value
    with pytest.raises(NonFiniteError, match="Row 4321, column 2"):
        Centroids(np.eye(n)).assign(open_source(torch.tensor(X, device="cuda")))


def test_a_gpu_without_triton_gives_the_same_labels() -> None:
    from ckm._kmeans.nearest_gpu import GpuSearch

    X, C = torch.randn(5000, 6, device="cuda"), np.random.default_rng(0).normal(size=(9, 6))
    expected, sse = Centroids(C).assign(open_source(X))
    labels, other = GpuSearch(CentroidIndex(C), use_triton=False).assign(open_source(X))
    assert torch.equal(labels, expected)
    assert sse == pytest.approx(other, rel=1e-12)
