"""Points on a GPU agree with those on the CPU up to rounding. Without a GPU, torch computes
on the CPU.
"""

import numpy as np
import pytest

from ckm._kmeans.breathing import place
from ckm._kmeans.init import default_trials, kmeans_plus_plus
from ckm._kmeans.points import WeightedPoints

torch = pytest.importorskip("torch")
NEEDS_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=NEEDS_GPU)])
def device(request: pytest.FixtureRequest) -> object:
    """Where torch computes."""
    return torch.device(request.param)


@pytest.mark.parametrize("K", [1, 9, 60])
def test_labels_sums_and_seeds_agree_with_the_cpu(device: object, K: int) -> None:
    from ckm._kmeans.points_gpu import WeightedPointsGpu

    rng = np.random.default_rng(K)
    points = rng.normal(size=(2000, 3))
    beta = rng.integers(0, 3, 2000).astype(float)
    C = rng.normal(size=(K, 3))
    on_cpu = WeightedPoints(points, beta)
    on_gpu = WeightedPointsGpu(points, beta, device, pairs_at_once=5000)
    for expected, found in zip(
        (*on_cpu.nearest(C), *on_cpu.sums(C)), (*on_gpu.nearest(C), *on_gpu.sums(C)), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    if K > 1:
        for expected, found in zip(on_cpu.two_nearest(C), on_gpu.two_nearest(C), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    seeds_cpu, seeds_gpu = (
        kmeans_plus_plus(where, K, np.random.default_rng(0), default_trials(K))
        for where in (on_cpu, on_gpu)
    )
    np.testing.assert_array_equal(seeds_gpu, seeds_cpu)


@pytest.mark.parametrize("distinct", [1, 2, 5])
def test_fewer_distinct_points_than_centroids(device: object, distinct: int) -> None:
    points = np.repeat(np.random.default_rng(0).normal(size=(distinct, 2)), 10, axis=0)
    on_cpu, on_gpu = (
        place(points, None, 7, np.random.default_rng(0), device=where) for where in (None, device)
    )
    found, expected = (np.unique(C.round(12), axis=0) for C in (on_gpu[0], on_cpu[0]))
    np.testing.assert_array_equal(found, expected)
    assert len(found) == distinct
    assert max(on_gpu[2], on_cpu[2]) < 1e-28


def test_squared_distances_far_from_zero_do_not_cancel(device: object) -> None:
    from ckm._kmeans.points_gpu import WeightedPointsGpu

    points = 1e8 + np.random.default_rng(0).normal(size=(40, 2))
    labels, squares = WeightedPointsGpu(points, np.ones(40), device).nearest(points[:1])
    np.testing.assert_array_equal(labels, np.zeros(40))
    np.testing.assert_allclose(
        squares, WeightedPoints(points, np.ones(40)).nearest(points[:1])[1], rtol=1e-14
    )
