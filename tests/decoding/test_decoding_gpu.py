"""Decoding with torch, on the CPU and on a GPU if there is one: objective and k-means agree with
those of the CPU to rounding.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import ckm
from ckm._decoding.api import Run, choose_device, find_centroids, resolve_decoder
from ckm._decoding.candidate import Candidate
from ckm._decoding.problem import Problem
from ckm._decoding.sample import SampledRows
from ckm._decoding.settings import DEFAULT
from ckm._util.device import current_gpu
from ckm.errors import ParameterError

torch = pytest.importorskip("torch")
DEVICES = [
    "cpu",
    pytest.param(
        "cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
    ),
]


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> object:
    """The torch device that computes."""
    return torch.device(request.param)


def make_sketch(
    K: int = 6, n: int = 3, distribution: str = "multiscale", pool: int = 0, separation: float = 2.5
) -> ckm.Sketch:
    X = ckm.datasets.gaussian_mixture(5000, K, n, separation=separation, random_state=0).rows
    return ckm.sketch(
        X, n_clusters=K, distribution=distribution, pool=pool, random_state=0, cells=0
    )


@pytest.mark.parametrize("K", [1, 7, 40])
def test_costs_and_gradients_are_those_of_the_cpu(device: object, K: int) -> None:
    sketch = make_sketch()
    rng = np.random.default_rng(K)
    several_blocks = replace(DEFAULT, gpu_block_pairs=500)
    cpu = Problem.of(sketch).objective
    gpu = Problem.of(sketch, device, several_blocks).objective
    C = rng.normal(size=(K, 3))
    alpha = rng.random(K) / K
    widths = rng.random((K, 3))
    for name, arguments in (
        ("blurred_cost", (C, alpha, 0.3)),
        ("gaussian_cost", (C, alpha, widths)),
        ("residual", (C, alpha, 0.2)),
        ("correlations", (C, sketch.z)),
    ):
        expected, found = (
            np.hstack([np.ravel(part) for part in _parts(getattr(objective, name)(*arguments))])
            for objective in (cpu, gpu)
        )
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10, err_msg=name)
    np.testing.assert_allclose(
        gpu.fit_weights(C, 0.2), cpu.fit_weights(C, 0.2), rtol=1e-7, atol=1e-9
    )


def _parts(found: object) -> tuple[object, ...]:
    return found if isinstance(found, tuple) else (found,)


def test_stages_and_parts_of_a_problem_stay_on_the_device(device: object) -> None:
    from ckm._decoding.objective_gpu import GpuObjective

    problem = Problem.of(make_sketch(), device)
    rest = problem.without(problem.mean[None], np.array([0.1]), problem.lower, problem.upper)
    for part in (*problem.stages, rest):
        assert isinstance(part.objective, GpuObjective)
        assert part.objective.z.device.type == device.type


@pytest.mark.parametrize(
    ("decoder", "pool", "separation"),
    [("density", 0, 6.0), ("density", 300, 1.5), ("clompr", 0, 2.5)],
)
def test_decoding_on_the_device_is_as_good_and_reproducible(
    device: object, decoder: str, pool: int, separation: float
) -> None:
    from ckm._decoding.objective_gpu import GpuObjective

    K = 4
    X = ckm.datasets.gaussian_mixture(5000, K, 3, separation=separation, random_state=0).rows
    sketch = make_sketch(K, 3, pool=pool, separation=separation)
    on_cpu = ckm.decode(sketch, K, decoder=decoder, random_state=0)
    name, search = resolve_decoder(decoder)
    problems = []

    def recorded(problem: Problem, *arguments: Any) -> Candidate:
        problems.append(problem)
        return search(problem, *arguments)

    rows = SampledRows.of(sketch)
    on_device, again = (
        Run(name, recorded, K, "auto", rows, 0, threads=threads).decode(sketch, device)
        for threads in (1, 2)
    )
    assert len(problems) == 2
    assert all(isinstance(problem.objective, GpuObjective) for problem in problems)
    np.testing.assert_array_equal(on_device.centroids, again.centroids)
    assert on_device.score(X) / on_cpu.score(X) == pytest.approx(1, abs=0.02)


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
    chosen = choose_device(sketch, K, device)
    assert chosen == (None if found is None else torch.device(found))


def test_without_a_gpu_there_is_no_current_one() -> None:
    assert (current_gpu() is None) is not torch.cuda.is_available()


@pytest.mark.parametrize(
    "message", ["CUDA out of memory. Tried to allocate", "an illegal memory access"]
)
def test_a_gpu_without_memory_leaves_decoding_to_the_cpu(
    device: object, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    name, search = resolve_decoder("density")

    def fail_on_device(problem: Problem, *arguments: Any) -> Candidate:
        if problem.device is not None:
            raise RuntimeError(message)
        return search(problem, *arguments)

    sketch = make_sketch(3, 2)
    run = Run(name, fail_on_device, 3, "auto", None, 0)
    is_full = "out of memory" in message
    with (
        nullcontext() if is_full else pytest.raises(RuntimeError, match="illegal"),
        caplog.at_level(logging.WARNING),
    ):
        found = run.decode(sketch, device)
    if is_full:
        expected = ckm.decode(sketch, 3, random_state=0)
        np.testing.assert_array_equal(found.centroids, expected.centroids)
        assert "too little memory left" in caplog.text


def test_an_unknown_device_is_refused() -> None:
    with pytest.raises(ParameterError, match="no device 'abacus'"):
        ckm.decode(make_sketch(3, 2), 3, device="abacus")


@pytest.mark.parametrize("asked_for", ["auto", "cpu"])
def test_the_estimator_decodes_where_its_rows_are(
    asked_for: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    there = list[object]()

    def decode(*args: object, device: str, **search: object) -> object:
        asked.append((device, *there))
        return find_centroids(*args, device="cpu", **search)

    @contextmanager
    def current(device: object) -> Iterator[None]:
        there[:] = [device]
        yield

    monkeypatch.setattr("ckm._sklearn.fitting.find_centroids", decode)
    monkeypatch.setattr("ckm._sklearn.fitting.use_gpu", current)
    X = ckm.datasets.gaussian_mixture(500, 3, 2, random_state=0).rows
    model = ckm.CompressiveKMeans(3, device=asked_for, random_state=0).fit(X)
    model._decode("cuda:1")
    assert asked == [
        (asked_for, None),
        ("cuda:1" if asked_for == "auto" else asked_for, "cuda:1"),
    ]
