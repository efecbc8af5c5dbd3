"""Wide rows on a GPU: projected and added up there, correct to rounding, in half precision too."""

import numpy as np
import pytest

import ckm
from ckm._kernels import load_kernel
from ckm._kernels.cpu.wide import reduce_rows
from ckm._kmeans.assign import Centroids
from ckm._sources import open_source
from ckm.errors import NonFiniteError

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("there is no GPU", allow_module_level=True)

K = 8
KINDS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


def embeddings(count: int = 20_000, n: int = 200, shift: float = 0.0, seed: int = 0) -> np.ndarray:
    """Rows whose clusters differ in a few directions."""
    rng = np.random.default_rng(seed)
    basis = rng.normal(size=(6, n)) / np.sqrt(n)
    own = rng.integers(K, size=count)
    along = 4 * rng.normal(size=(K, 6))[own] + rng.normal(size=(count, 6))
    return shift + along @ basis + 0.05 * rng.normal(size=(count, n))


def on_gpu(X: np.ndarray, kind: object = torch.float16) -> "torch.Tensor":
    return torch.tensor(X, device="cuda").to(kind)


@pytest.fixture(scope="module")
def rows() -> "torch.Tensor":
    return on_gpu(embeddings())


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("shift", [0.0, 30.0])
@pytest.mark.parametrize("kind", KINDS)
def test_projections_and_sums_are_those_of_the_cpu_to_rounding(
    kind: object, shift: float, is_weighted: bool
) -> None:
    there = on_gpu(embeddings(3000, shift=shift), kind)
    here = there.double().cpu().numpy()
    beta = np.random.default_rng(0).uniform(0.5, 2, len(here)) if is_weighted else None
    design = ckm.sketch(here, n_clusters=K, random_state=0).design
    assert (design.frequencies.projection.origin is None) == (shift == 0)
    expected = reduce_rows(design, here, beta)
    found = load_kernel("gpu").reduce(design, there, beta)
    scale = np.abs(expected.rows).max()
    np.testing.assert_allclose(np.asarray(found.rows), expected.rows, atol=1e-5 * scale)
    columns = expected.columns
    np.testing.assert_allclose(found.columns.first, columns.first, rtol=1e-6, atol=1e-3)
    np.testing.assert_allclose(found.columns.second, columns.second, rtol=1e-6)
    # Rows halfway between two anchors may go to either.
    moved = np.abs(found.cells.mass - expected.cells.mass).sum() / 2
    assert moved <= 0.01 * expected.cells.mass.sum()
    assert found.cells.mass.sum() == pytest.approx(expected.cells.mass.sum(), rel=1e-12)
    for own, other in zip(found.cells.arrays[1:], expected.cells.arrays[1:], strict=True):
        largest = np.abs(other.astype(float)).sum(axis=0).max()
        apart = own.sum(axis=0) - other.astype(float).sum(axis=0)
        assert np.abs(apart).max() <= 1e-6 * largest


def test_cells_are_nearly_as_tight_as_those_of_the_cpu(rows: "torch.Tensor") -> None:
    here = rows.double().cpu().numpy()
    exact = ckm.sketch(here, n_clusters=K, random_state=0)
    cells = ckm.sketch(rows, like=exact).cells
    mass, _, variances = cells.statistics()
    exact_mass, _, exact_variances = exact.cells.statistics()
    assert mass @ variances == pytest.approx(exact_mass @ exact_variances, rel=1e-3)


def test_sketches_of_projected_rows_are_not_exact_and_agree_with_the_cpu(
    rows: "torch.Tensor",
) -> None:
    found = ckm.sketch(rows, n_clusters=K, random_state=0)
    here = ckm.sketch(rows.float().cpu().numpy(), like=found)
    assert here.exact
    assert not found.exact
    assert not found.cells.exact
    np.testing.assert_allclose(found.z, here.z, atol=2e-6)
    np.testing.assert_allclose(found.lower, here.lower, atol=1e-4)


def test_the_same_rows_give_the_same_bits_again(rows: "torch.Tensor") -> None:
    first = ckm.sketch(rows, n_clusters=K, random_state=0)
    assert ckm.sketch(rows, n_clusters=K, random_state=0) == first
    assert ckm.sketch(rows, like=first) == first


def test_they_merge_with_and_are_subtracted_from_those_of_the_cpu(rows: "torch.Tensor") -> None:
    whole = ckm.sketch(rows, n_clusters=K, random_state=0)
    there = ckm.sketch(rows[:7000], like=whole)
    here = ckm.sketch(rows[7000:].float().cpu().numpy(), like=whole)
    both = there + here
    assert both.count == whole.count
    np.testing.assert_allclose(both.z, whole.z, atol=2e-6)
    np.testing.assert_allclose(both.cells.mass.sum(), len(rows))
    for left, other in ((both - here, there), (both - there, here), (whole - here, there)):
        assert left.count == other.count
        np.testing.assert_allclose(left.z, other.z, atol=1e-5)
        assert ckm.decode(left, K, random_state=0).centroids.shape == (K, rows.shape[1])


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_fits_of_half_precision_are_as_good_as_on_the_cpu(kind: object) -> None:
    there = on_gpu(embeddings(), kind)
    here = there.float().cpu().numpy()
    model = ckm.CompressiveKMeans(K, random_state=0).fit(there)
    other = ckm.CompressiveKMeans(K, random_state=0).fit(here)
    assert model.labels_.device == there.device
    assert model.inertia_ == pytest.approx(other.inertia_, rel=1e-3)
    labels = other.predict(here)
    centroids = Centroids(other.cluster_centers_)
    found, sse = centroids.assign(open_source(there))
    np.testing.assert_array_equal(found.cpu().numpy(), labels)
    assert sse == pytest.approx(other.inertia_, rel=1e-12)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize(("n", "count"), [(32, 5), (100, 37), (768, 300)])
def test_labels_of_half_precision_are_those_of_float64(kind: object, n: int, count: int) -> None:
    rng = np.random.default_rng(n)
    C = 3 + rng.normal(size=(count, n))
    C[-1] = C[0]
    there = on_gpu(C[rng.integers(count, size=5000)] + 3 * rng.normal(size=(5000, n)), kind)
    # Halfway between two centroids, and far out.
    C[1] = there[0].double().cpu().numpy() + 1
    C[2] = there[0].double().cpu().numpy() - 1
    there[1] *= 1000
    rows = there.double().cpu().numpy()
    beta = rng.uniform(size=len(rows))
    labels, sse = Centroids(C).assign(open_source(rows))
    found, own = Centroids(C).assign(open_source(there))
    np.testing.assert_array_equal(found.cpu().numpy(), labels)
    assert own == pytest.approx(sse, rel=1e-12)
    strided = there.repeat(1, 2)[::2, :n]
    np.testing.assert_array_equal(Centroids(C).label(open_source(strided)).cpu(), labels[::2])
    weighted = ckm.CompressiveKMeans(2, random_state=0).fit(there, sample_weight=beta)
    assert np.isfinite(weighted.inertia_)


def test_wide_rows_in_half_precision_are_not_copied() -> None:
    there = torch.randn((400_000, 768), device="cuda").half()
    like = ckm.sketch(there[:20_000], n_clusters=K, random_state=0)
    centroids = Centroids(ckm.decode(like, K, random_state=0).centroids)
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    ckm.sketch(there, like=like)
    centroids.assign(open_source(there))
    assert torch.cuda.max_memory_allocated() - before < 0.5 * there.nbytes


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_value_that_is_not_finite_is_named(rows: "torch.Tensor", value: float) -> None:
    like = ckm.sketch(rows, n_clusters=K, random_state=0)
    bad = rows.clone()
    bad[12_345, 67] = value
    for use in (
        lambda: ckm.sketch(bad, like=like),
        lambda: Centroids(np.zeros((2, rows.shape[1]))).assign(open_source(bad)),
    ):
        with pytest.raises(NonFiniteError, match=r"12345|12,345"):
            use()


def test_rows_of_the_cpu_are_projected_on_the_gpu(rows: "torch.Tensor") -> None:
    found = ckm.sketch(rows, n_clusters=K, random_state=0)
    here = rows.float().cpu().numpy()
    copied = ckm.sketch(here, like=found, device="cuda")
    assert not copied.exact
    np.testing.assert_allclose(copied.z, found.z, atol=1e-6)
    pooled = ckm.sketch(rows, like=found, pool=100, random_state=0)
    assert pooled.pool is not None
    assert pooled.pool.rows.shape[1] == found.frequencies.n


def test_many_axes_and_no_cells(rows: "torch.Tensor") -> None:
    for options in ({"projection": 150}, {"projection": 100, "cells": 0}, {"projection": 40}):
        found = ckm.sketch(rows, n_clusters=2, random_state=0, **options)
        here = ckm.sketch(rows.float().cpu().numpy(), like=found)
        np.testing.assert_allclose(found.z, here.z, atol=3e-6)
        np.testing.assert_allclose(found.tally.columns.first, here.tally.columns.first, rtol=1e-5)


def test_whole_numbers_are_projected_as_they_are() -> None:
    there = torch.tensor(20 * embeddings(5000), device="cuda").to(torch.int8)
    found = ckm.sketch(there, n_clusters=K, random_state=0)
    here = ckm.sketch(there.cpu().numpy(), like=found)
    np.testing.assert_allclose(found.z, here.z, atol=2e-6)
    np.testing.assert_array_equal(found.tally.columns.first, here.tally.columns.first)


def test_unit_rows_in_half_precision(rows: "torch.Tensor") -> None:
    found = ckm.sketch(rows, n_clusters=K, metric="cosine", random_state=0)
    here = ckm.sketch(rows.float().cpu().numpy(), like=found)
    assert not found.exact
    np.testing.assert_allclose(found.z, here.z, atol=2e-6)
    model = ckm.CompressiveKMeans(K, metric="cosine", random_state=0).fit(rows)
    other = ckm.CompressiveKMeans(K, metric="cosine", random_state=0).fit(
        rows.float().cpu().numpy()
    )
    assert model.inertia_ == pytest.approx(other.inertia_, rel=1e-2)
