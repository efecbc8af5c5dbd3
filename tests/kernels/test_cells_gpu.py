"""Cells of rows on a GPU: bit-identical to the CPU, wherever rows lie and however they are cut."""

import numpy as np
import pytest

import ckm
from ckm._core.cells import Anchors, Cells
from ckm._kernels import load_kernel
from ckm._kernels.cpu.cells import tally_cells

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("there is no GPU", allow_module_level=True)

gpu = load_kernel("gpu").tally_cells

SIZES = [
    (1, 1, 300),
    (2, 33, 1),
    (3, 60, 1000),
    (5, 5000, 20_000),
    (10, 160, 70_001),
    (16, 31, 4000),
    (20, 2000, 3000),
    (64, 100, 5000),
    (100, 64, 999),
]


def make(n: int, s: int, count: int, dtype: type) -> tuple[Anchors, np.ndarray, np.ndarray]:
    """Anchors, an origin, and rows, some of which are far from the others."""
    rng = np.random.default_rng([n, s, count])
    X = 5 + rng.normal(size=(count, n))
    X[rng.random(count) < 0.02] *= 10.0 ** rng.integers(0, 9)
    metric = np.exp(rng.normal(size=n))
    anchors = Anchors.on_grids(rng.normal(size=(s, n)), metric, np.ones(n), 1.0)
    return anchors, np.full(n, 5.0), X.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "s", "count"), SIZES)
def test_cells_of_the_gpu_are_bit_identical_to_those_of_the_cpu(
    n: int, s: int, count: int, dtype: type
) -> None:
    anchors, origin, X = make(n, s, count, dtype)
    expected = tally_cells(anchors, origin, X).identity()
    for rows in (
        X,
        torch.tensor(X, device="cuda"),
        torch.tensor(X.T.copy(), device="cuda").T,
        torch.tensor(X, device="cuda").repeat(1, 2)[:, :n],
    ):
        assert gpu(anchors, origin, rows).identity() == expected


def test_ties_go_to_the_first_anchor() -> None:
    rng = np.random.default_rng(0)
    values = rng.integers(-2, 3, size=(300, 2)).astype(np.float32)
    anchors = Anchors.on_grids(values, np.ones(2), np.ones(2), 1.0)
    X = rng.integers(-6, 7, size=(5000, 2)) / 2
    found = gpu(anchors, np.zeros(2), torch.tensor(X, device="cuda"))
    assert found.identity() == tally_cells(anchors, np.zeros(2), X).identity()


def test_rows_of_any_length_are_added_exactly() -> None:
    anchors, origin, X = make(3, 40, 2000, np.float64)
    X[::9] *= 1e30
    found = gpu(anchors, origin, torch.tensor(X, device="cuda"))
    assert found.sums.dtype == object
    assert found.identity() == tally_cells(anchors, origin, X).identity()


def test_weighted_cells_are_those_of_the_cpu() -> None:
    anchors, origin, X = make(4, 40, 3000, np.float32)
    beta = np.random.default_rng(0).uniform(size=3000)
    found = gpu(anchors, origin, torch.tensor(X, device="cuda"), beta)
    assert found.identity() == tally_cells(anchors, origin, X, beta).identity()


def test_many_rows_and_any_order_give_the_same_bits() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6_000_000, 2)).astype(np.float32)
    anchors = Anchors.on_grids(rng.normal(size=(50, 2)), np.ones(2), np.ones(2), 1.0)
    there = torch.tensor(X, device="cuda")
    whole = gpu(anchors, np.zeros(2), there)
    assert whole.mass.sum() == len(X)
    shuffled = there[torch.randperm(len(X), device="cuda")]
    parts = [gpu(anchors, np.zeros(2), part) for part in shuffled.split(1_700_001)]
    assert sum(parts, Cells.empty(anchors)).identity() == whole.identity()
    some = X[:100_000]
    assert (
        gpu(anchors, np.zeros(2), there[:100_000]).identity()
        == tally_cells(anchors, np.zeros(2), some).identity()
    )


def test_sketches_keep_cells_by_default_with_the_bits_of_the_cpu() -> None:
    X = ckm.datasets.gaussian_mixture(200_000, 8, 6, random_state=0).rows.astype(np.float32)
    there = torch.tensor(X, device="cuda")
    found = ckm.sketch(there, n_clusters=8, random_state=0)
    assert found.cells is not None
    assert ckm.sketch(X, like=found) == found
    assert ckm.sketch(X, like=found, device="cuda") == found
    assert ckm.sketch(there.split(7001), like=found) == found


def test_the_default_fit_of_rows_on_a_gpu() -> None:
    X = np.random.default_rng(0).gamma(2, size=(100_000, 3))
    model = ckm.CompressiveKMeans(5, random_state=0).fit(torch.tensor(X, device="cuda"))
    assert model.sketch_.cells is not None
    there = float(model.inertia_)
    here = ckm.CompressiveKMeans(5, random_state=0).fit(X).inertia_
    assert there == pytest.approx(here, rel=0.005)
