"""Decoding by torch, on the CPU and on a card where there is one: the objectives and the k-means of
the numba decoder, to rounding.
"""

import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import numpy as np
import pytest

import ckm
from ckm._decoding import api as decoding
from ckm._decoding import objective as atoms
from ckm._decoding.objective import Problem
from ckm._kmeans.breathing import place
from ckm._kmeans.init import default_trials, kmeans_plus_plus
from ckm._kmeans.points import WeightedPoints
from ckm._util.device import current_gpu
from ckm.errors import ParameterError

torch = pytest.importorskip("torch")
DEVICES = [
    "cpu",
    pytest.param(
        "cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no card")
    ),
]


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> object:
    """Where torch computes."""
    return torch.device(request.param)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that there are several."""
    monkeypatch.setattr("ckm._decoding.objective_gpu._PAIRS", 500)


@pytest.fixture
def everything_there(monkeypatch: pytest.MonkeyPatch, device: object) -> Counter[str]:
    """However small it is, and even if the card is the CPU; how often costs and clouds were made
    there.
    """
    from ckm._decoding.objective_gpu import CardCosts
    from ckm._kmeans.points_gpu import WeightedPointsGpu

    made = Counter[str]()

    class Costs(CardCosts):
        def __init__(self, *args: object) -> None:
            made["costs"] += 1
            super().__init__(*args)

    class Counted(WeightedPointsGpu):
        def __init__(self, *args: object) -> None:
            made["clouds"] += 1
            super().__init__(*args)

    monkeypatch.setattr(
        decoding, "_decoding_device", lambda sketch, K, asked: device if asked == "cuda" else None
    )
    monkeypatch.setattr("ckm._decoding.objective_gpu.CardCosts", Costs)
    monkeypatch.setattr("ckm._kmeans.points_gpu.WeightedPointsGpu", Counted)
    return made


def make_sketch(
    K: int = 6, n: int = 3, distribution: str = "multiscale", pool: int = 0, separation: float = 2.5
) -> ckm.Sketch:
    X = ckm.datasets.gaussian_mixture(5000, K, n, separation=separation, random_state=0).rows
    return ckm.sketch(X, n_clusters=K, distribution=distribution, pool=pool, random_state=0)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("K", [1, 7, 40])
def test_costs_and_gradients_are_those_of_the_cpu(device: object, K: int) -> None:
    sketch, rng = make_sketch(), np.random.default_rng(K)
    here, there = Problem.of(sketch), Problem.of(sketch, device)
    C, alpha, widths = rng.normal(size=(K, 3)), rng.random(K) / K, rng.random((K, 3))
    for function, arguments in (
        (atoms.blurred_cost, (C, alpha, 0.3)),
        (atoms.gaussian_cost, (C, alpha, widths)),
        (atoms.residual, (C, alpha, 0.2)),
        (atoms.correlations, (here.z, C)),
    ):
        expected, found = (
            np.hstack([np.ravel(part) for part in _parts(function(problem, *arguments))])
            for problem in (here, there)
        )
        np.testing.assert_allclose(
            found, expected, rtol=1e-9, atol=1e-10, err_msg=function.__name__
        )
    np.testing.assert_allclose(
        atoms.fit_weights(there, C, 0.2), atoms.fit_weights(here, C, 0.2), rtol=1e-7, atol=1e-9
    )


def _parts(found: object) -> tuple[object, ...]:
    return found if isinstance(found, tuple) else (found,)


def test_stages_and_parts_of_a_problem_stay_there(device: object) -> None:
    problem = Problem.of(make_sketch(), device)
    assert all(stage.card is not None for stage in problem.stages)
    assert (
        problem.without(problem.mean[None], np.array([0.1]), problem.lower, problem.upper).card
        is not None
    )


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("K", [1, 9, 60])
def test_k_means_asks_a_card_as_it_asks_the_cpu(device: object, K: int) -> None:
    from ckm._kmeans.points_gpu import WeightedPointsGpu

    rng = np.random.default_rng(K)
    points, beta, C = (
        rng.normal(size=(2000, 3)),
        rng.integers(0, 3, 2000).astype(float),
        rng.normal(size=(K, 3)),
    )
    here = WeightedPoints(points, beta)
    there = WeightedPointsGpu(points, beta, device, pairs_at_once=5000)
    for expected, found in zip(
        (*here.nearest(C), *here.sums(C)), (*there.nearest(C), *there.sums(C)), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    if K > 1:
        for expected, found in zip(here.two_nearest(C), there.two_nearest(C), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    seeds_here, seeds_there = (
        kmeans_plus_plus(where, K, np.random.default_rng(0), default_trials(K))
        for where in (here, there)
    )
    np.testing.assert_array_equal(seeds_there, seeds_here)


@pytest.mark.parametrize("distinct", [1, 2, 5])
def test_fewer_distinct_points_than_centroids(device: object, distinct: int) -> None:
    points = np.repeat(np.random.default_rng(0).normal(size=(distinct, 2)), 10, axis=0)
    here, there = (
        place(points, None, 7, np.random.default_rng(0), device=where) for where in (None, device)
    )
    found, expected = (np.unique(C.round(12), axis=0) for C in (there[0], here[0]))
    np.testing.assert_array_equal(found, expected)
    assert len(found) == distinct
    assert max(there[2], here[2]) < 1e-28


def test_far_out_squared_distances_do_not_cancel(device: object) -> None:
    from ckm._kmeans.points_gpu import WeightedPointsGpu

    points = 1e8 + np.random.default_rng(0).normal(size=(40, 2))
    labels, squares = WeightedPointsGpu(points, np.ones(40), device).nearest(points[:1])
    np.testing.assert_array_equal(labels, np.zeros(40))
    np.testing.assert_allclose(
        squares, WeightedPoints(points, np.ones(40)).nearest(points[:1])[1], rtol=1e-14
    )


@pytest.mark.parametrize(
    ("decoder", "pool", "separation"),
    [("density", 0, 6.0), ("density", 300, 1.5), ("clompr", 0, 2.5)],
)
def test_decoding_there_is_as_good_and_gives_the_same_bits_again(
    everything_there: Counter[str], decoder: str, pool: int, separation: float
) -> None:
    K = 4
    X = ckm.datasets.gaussian_mixture(5000, K, 3, separation=separation, random_state=0).rows
    sketch = make_sketch(K, 3, pool=pool, separation=separation)
    here = ckm.decode(sketch, K, decoder=decoder, random_state=0)
    assert not everything_there
    there, again = (
        ckm.decode(sketch, K, decoder=decoder, random_state=0, device="cuda", n_jobs=jobs)
        for jobs in (1, 2)
    )
    assert everything_there["costs"] >= 2
    assert decoder == "clompr" or everything_there["clouds"] >= 2
    np.testing.assert_array_equal(there.centroids, again.centroids)
    assert there.score(X) / here.score(X) == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize(
    ("device", "distribution", "K", "found"),
    [
        ("cuda", "multiscale", 100, "cuda:0"),
        ("cuda", "multiscale", 99, None),
        ("cuda", "structured", 100, None),
        ("cuda:1", "multiscale", 100, "cuda:1"),
        ("cpu", "multiscale", 100, None),
        ("auto", "multiscale", 100, None),
    ],
)
def test_a_large_sketch_is_decoded_on_the_gpu_that_was_asked_for(
    device: str, distribution: str, K: int, found: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    frequencies = ckm.draw_frequencies(2000, 4, distribution=distribution, seed=0)
    sketch = ckm.sketch(np.random.default_rng(0).normal(size=(200, 4)), like=frequencies)
    chosen = decoding._decoding_device(sketch, K, device)
    assert chosen == (None if found is None else torch.device(found))


def test_without_a_card_there_is_none() -> None:
    assert (current_gpu() is None) is not torch.cuda.is_available()


@pytest.mark.parametrize(
    "message", ["CUDA out of memory. Tried to allocate", "an illegal memory access"]
)
def test_a_card_that_is_full_leaves_it_to_the_cpu(
    everything_there: Counter[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(*args: object) -> None:
        raise RuntimeError(message)

    monkeypatch.setattr("ckm._decoding.objective_gpu.CardCosts.of", fail)
    sketch, full = make_sketch(3, 2), "out of memory" in message
    with (
        nullcontext() if full else pytest.raises(RuntimeError, match="illegal"),
        caplog.at_level(logging.WARNING),
    ):
        found = ckm.decode(sketch, 3, random_state=0, device="cuda")
    if full:
        np.testing.assert_array_equal(
            found.centroids, ckm.decode(sketch, 3, random_state=0).centroids
        )
        assert "too little memory left" in caplog.text


def test_an_unknown_device_is_refused() -> None:
    with pytest.raises(ParameterError, match="no device 'abacus'"):
        ckm.decode(make_sketch(3, 2), 3, device="abacus")


@pytest.mark.parametrize("asked_for", ["auto", "cpu"])
def test_the_estimator_decodes_where_its_rows_are(
    asked_for: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, there = [], list[object]()

    def decode(*args: object, device: str, **search: object) -> object:
        asked.append((device, *there))
        return ckm.decode(*args, **search)

    @contextmanager
    def current(device: object) -> Iterator[None]:
        there[:] = [device]
        yield

    monkeypatch.setattr("ckm.estimators.decode", decode)
    monkeypatch.setattr("ckm.estimators.use_gpu", current)
    X = ckm.datasets.gaussian_mixture(500, 3, 2, random_state=0).rows
    model = ckm.CompressiveKMeans(3, device=asked_for, random_state=0).fit(X)
    model._decode("cuda:1")
    assert asked == [
        (asked_for, None),
        ("cuda:1" if asked_for == "auto" else asked_for, "cuda:1"),
    ]
