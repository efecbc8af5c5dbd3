"""Torch without a card: tensors on the CPU are arrays, and plain torch agrees with the exact
kernel.
"""

import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from test_kernels import make_frequencies, make_rows

import ckm
from ckm._kernels import load_kernel
from ckm._kmeans.assign import assign, label
from ckm._sketching.accumulate import importance
from ckm._sketching.jobs import SketchJob
from ckm._sources.base import BEGINNING, Chunk, Place, Source
from ckm._util.device import DeviceRows
from ckm.errors import MissingPackageError, NonFiniteError


def test_without_torch_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ckm._kernels.gpu.sums", "ckm._kernels.torch"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    for kernel in ("torch", "torch-plain"):
        with pytest.raises(MissingPackageError, match=r"needs torch.*compressive-kmeans\[gpu\]"):
            ckm.sketch(np.eye(3), sketch_size=5, scale=1.0, kernel=kernel)


def test_a_tensor_on_the_cpu_is_summed_in_place_with_the_same_bits() -> None:
    torch = pytest.importorskip("torch")
    f, X = make_frequencies(3, 20, 0), make_rows(3, 1000, 0, np.float32)
    tensor, expected = torch.tensor(X), ckm.sketch(X, like=f)
    for kernel in ("auto", "numba", "torch"):
        for rows in (tensor, tensor.requires_grad_(), torch.tensor(X.T.copy()).T, tensor.double()):
            assert ckm.sketch(rows, like=f, kernel=kernel) == expected
    assert load_kernel("torch")(f, tensor, None).exact


def test_a_model_is_fitted_to_tensors_on_the_cpu(clusters: np.ndarray) -> None:
    torch = pytest.importorskip("torch")
    here, there = (
        ckm.CompressiveKMeans(n_clusters=3, random_state=0).fit(rows)
        for rows in (clusters, torch.tensor(clusters))
    )
    assert here.sketch_ == there.sketch_
    np.testing.assert_array_equal(here.labels_, there.labels_)


@pytest.mark.parametrize("weighted", [False, True])
def test_plain_torch_agrees_with_the_reference_and_says_so(weighted: bool) -> None:
    torch = pytest.importorskip("torch")
    f, X = make_frequencies(7, 30, 0, 1e3), make_rows(7, 3000, 0, np.float32, 1e3)
    beta = np.random.default_rng(0).gamma(1.0, size=len(X)) if weighted else None
    plain, reference = (
        load_kernel("torch-plain")(f, torch.tensor(X), beta),
        load_kernel("reference")(f, X, beta),
    )
    assert not plain.exact
    np.testing.assert_allclose(plain.sums, reference.sums, rtol=0, atol=1e-9 * 2**22 * len(X))
    np.testing.assert_array_equal(plain.lower, reference.lower)
    np.testing.assert_array_equal(plain.upper, reference.upper)
    np.testing.assert_allclose(plain.second, reference.second, rtol=1e-12)


def test_plain_torch_refuses_what_is_not_finite() -> None:
    torch = pytest.importorskip("torch")
    X = make_rows(3, 100, 0).copy()
    X[42, 1] = np.inf
    with pytest.raises(NonFiniteError, match="Row 42, column 1 holds inf"):
        load_kernel("torch-plain")(make_frequencies(3, 20, 0), torch.tensor(X), None)


# A card without Triton, and several cards, played by the CPU


class OnTheCard(Source):
    """Tensors on the CPU that are taken for rows on a card, some at a time."""

    columns, device = None, "cpu"

    def __init__(self, X: np.ndarray, weights: np.ndarray | None = None, step: int = 700) -> None:
        self._rows, self._weights, self._rows_at_once = torch_of(X), weights, step
        self.n_rows, self.n_features = X.shape

    def chunks(self, start: Place = BEGINNING) -> Iterator[Chunk]:
        for low in range(start.row, self.n_rows, self._rows_at_once):
            part = slice(low, low + self._rows_at_once)
            beta = None if self._weights is None else self._weights[part]
            yield Chunk(
                DeviceRows(self._rows[part]),
                beta,
                Place(row=low),
                Place(row=low + self._rows_at_once),
            )


def torch_of(X: np.ndarray) -> Any:
    return pytest.importorskip("torch").tensor(X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16])
@pytest.mark.parametrize("weighted", [False, True])
def test_labels_without_triton_are_those_of_the_cpu(dtype: type, weighted: bool) -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    X, C = (5 * rng.normal(size=(3000, 4))).astype(dtype), 5 * rng.normal(size=(9, 4))
    C[5] = C[2]  # of equals, the first
    X[:20] = ((C[0] + C[1]) / 2).astype(dtype)  # halfway
    beta = rng.gamma(1.0, size=len(X)) if weighted else None
    (labels, sse), (expected, other) = assign(OnTheCard(X, beta), C), assign(X, C, beta)
    assert isinstance(labels, torch.Tensor)
    assert labels.dtype == torch.int32
    np.testing.assert_array_equal(labels.numpy(), expected)
    assert sse == pytest.approx(other, rel=1e-12)


def test_labels_without_triton_name_what_is_not_finite() -> None:
    X = np.ones((3000, 2), np.float32)
    X[2345, 1] = np.nan
    with pytest.raises(NonFiniteError, match="Row 2345, column 1 holds NaN"):
        label(OnTheCard(X), np.eye(2))


@pytest.mark.parametrize("weighted", [False, True])
def test_a_pool_without_triton_has_the_odds_of_the_cpu(weighted: bool) -> None:
    rng = np.random.default_rng(0)
    X, f = (
        rng.normal(size=(2000, 3)).astype(np.float32),
        ckm.draw_frequencies(20, 3, scale=0.5, spread=2.0, origin=np.ones(3)),
    )
    beta = rng.gamma(1.0, size=len(X)) if weighted else None
    pytest.importorskip("torch")
    from ckm._kernels.gpu.sampling import draw_pool

    drawn = draw_pool(np.random.default_rng(1), DeviceRows(torch_of(X)), beta, 100, f)
    places = {row.tobytes(): i for i, row in enumerate(X)}
    which = [places[row.astype(np.float32).tobytes()] for row in drawn.rows]
    assert len(set(which)) == 100
    assert (np.diff(drawn.keys) >= 0).all()
    weights = np.ones(len(X)) if beta is None else beta
    np.testing.assert_array_equal(drawn.weights, weights[which])
    np.testing.assert_allclose(drawn.odds, (weights * importance(X, f))[which], rtol=1e-5)


@pytest.fixture
def two_cards(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Two cards, without Triton, that the CPU plays; how many blocks each has summed."""
    torch = pytest.importorskip("torch")
    from ckm._kernels.gpu import streams as lanes
    from ckm._kernels.gpu import sums as kernel

    used, plain = Counter[str](), kernel.plain.tally

    def tally(frequencies: Any, rows: Any, weights: Any) -> Any:
        used[running.get()] += 1
        return plain(frequencies, rows, weights)

    @contextmanager
    def on(device: Any) -> Iterator[None]:
        token = running.set(str(device))
        yield
        running.reset(token)

    running = ContextVar[str]("running")
    for name, fake in {
        "is_available": lambda: True, "device_count": lambda: 2, "get_device_properties": lambda i: SimpleNamespace(total_memory=2**34),
        "Stream": lambda device: None, "stream": lambda stream: nullcontext(), "device": on,
    }.items():  # fmt: skip
        monkeypatch.setattr(torch.cuda, name, fake)
    monkeypatch.setattr(lanes.Lane, "copied", lambda lane, name, array: torch.tensor(array))
    monkeypatch.setattr(lanes, "_free", {})
    monkeypatch.setattr(kernel, "has_triton", lambda device: False)
    monkeypatch.setattr(kernel, "STAGED_BYTES", 2**19)
    monkeypatch.setattr(kernel.plain, "tally", tally)
    return used


def test_several_cards_share_the_blocks(two_cards: Counter[str]) -> None:
    f, X = make_frequencies(8, 20, 0), make_rows(8, 200_000, 0, np.float32)
    expected = ckm.sketch(X, like=f, kernel="numba")
    found = ckm.sketch(X, like=f, kernel="torch", n_jobs=4)
    assert found.count == len(X)
    np.testing.assert_allclose(found.z, expected.z, rtol=0, atol=1e-6)
    assert sum(two_cards.values()) == 13  # 200 000 rows, 16 384 at a time
    assert min(two_cards["cuda:0"], two_cards["cuda:1"]) >= 1
    assert found == ckm.sketch(X, like=f, kernel="torch", n_jobs=2)


def test_lanes_go_to_the_card_with_the_fewest(two_cards: Counter[str]) -> None:
    from ckm._kernels.gpu.streams import lane

    with lane() as first, lane() as second, lane() as third:
        assert {str(first.device), str(second.device)} == {"cuda:0", "cuda:1"}
        assert third is not first
    with lane(second.device) as again:
        assert again in (first, second, third)


def test_kernels_of_a_card_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    from ckm._kernels.gpu import streams as lanes

    class Stream:
        """One for each thread, which writes down what it is told."""

        def wait_event(self, event: str) -> None:
            told.append(f"wait for {event}")

        def record_event(self) -> str:
            told.append(f"end {threading.current_thread().name}")
            return threading.current_thread().name

    def work() -> None:
        with lanes.in_turn("card"):
            told.append(f"begin {threading.current_thread().name}")
            time.sleep(0.01)

    told = list[str]()
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: Stream())
    monkeypatch.setattr(lanes, "_done", {})
    monkeypatch.setattr(lanes, "_turns", {})
    threads = [threading.Thread(target=work, name=name) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    order = [line[-1] for line in told if line.startswith("begin")]
    first, second, third = order
    assert sorted(order) == ["a", "b", "c"]
    assert told == [
        f"begin {first}", f"end {first}", f"wait for {first}", f"begin {second}", f"end {second}",
        f"wait for {second}", f"begin {third}", f"end {third}",
    ]  # fmt: skip


def test_rows_that_are_on_a_card_wait_for_their_turn(
    two_cards: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from ckm._kernels.gpu import sums as kernel

    turns = list[str]()

    @contextmanager
    def in_turn(device: Any) -> Iterator[None]:
        turns.append(str(device))
        yield

    monkeypatch.setattr(kernel, "in_turn", in_turn)
    f, X = make_frequencies(3, 20, 0), make_rows(3, 500, 0, np.float32)
    there, here = kernel.tally(f, DeviceRows(torch_of(X))), kernel.tally(f, X)
    assert turns == ["cpu"]
    np.testing.assert_array_equal(there.sums, here.sums)


def test_workers_without_a_card_use_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    f, X = make_frequencies(3, 20, 0), make_rows(3, 5000, 0, np.float32)
    there, here = (
        SketchJob(f, kernel).of_partition(0, iter([Chunk(X, None, Place(), Place(row=len(X)))]))
        for kernel in ("torch", "numba")
    )
    assert there == here
