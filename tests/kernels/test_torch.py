"""Torch without a GPU: tensors on the CPU are arrays, and plain torch agrees with the exact
kernel.
"""

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest
from test_kernels import assert_same_bits, make_frequencies, make_rows

import ckm
from ckm._core.cells import Anchors, Design
from ckm._kernels import Kernel, kernel_for, load_kernel
from ckm._kernels.cpu.cells import tally_cells
from ckm._kernels.cpu.kernel import importance
from ckm._kmeans.assign import Centroids
from ckm._sketching.accumulate import BlockSketcher, State, accumulate
from ckm._sketching.jobs import SketchJob
from ckm._sources.arrays import ArraySource
from ckm._sources.base import BEGINNING, Chunk, Place, Source
from ckm._sources.blocks import split_blocks
from ckm._sources.unit_rows import unit_rows
from ckm._util.device import DeviceRows, resolve_device
from ckm.errors import MissingPackageError, NonFiniteError, ParameterError

if TYPE_CHECKING:
    from ckm._kernels.gpu.kernel import GpuKernel
    from ckm._kernels.gpu.streams import StreamPool


def test_without_torch_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    for device in ("cuda", "cuda:1"):
        with pytest.raises(
            MissingPackageError, match=rf"device='{device}' needs torch.*compressive-kmeans\[gpu\]"
        ):
            ckm.sketch(np.eye(3), sketch_size=5, scale=1.0, device=device)


@pytest.mark.parametrize(
    "use",
    [
        lambda device: ckm.sketch(np.eye(3), sketch_size=5, scale=1.0, device=device),
        lambda device: ckm.Sketcher(n_clusters=2, device=device),
        lambda device: ckm.CompressiveKMeans(2, device=device).fit(np.eye(3)),
        lambda device: ckm.decode(ckm.sketch(np.eye(3), n_clusters=2), 2, device=device),
    ],
    ids=["sketch", "Sketcher", "fit", "decode"],
)
def test_a_gpu_that_is_not_there_is_an_error(
    use: Callable[[str], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ParameterError, match="torch finds none here; use device='cpu'"):
        use("cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(ParameterError, match=r"device=.cuda:2. is not there; .* cuda:0, cuda:1"):
        use("cuda:2")


def test_devices_are_resolved_where_rows_are(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    there = torch.device("cuda", 1)
    assert resolve_device("auto") is None
    assert resolve_device("auto", there) == torch.device("cuda")
    assert resolve_device("cpu", there) is None
    assert resolve_device("cuda", there) == torch.device("cuda")
    assert resolve_device("cuda:0", there) == torch.device("cuda", 0)


@pytest.mark.parametrize("kind", ["float32", "float64", "int16", "bfloat16"])
def test_the_cpu_kernel_copies_rows_from_a_gpu(kind: str) -> None:
    torch = pytest.importorskip("torch")
    f = make_frequencies(3, 20, 0)
    tensor = torch.randint(-9, 9, (500, 3)).to(getattr(torch, kind))
    rows = tensor.double().numpy()
    kernel = kernel_for(None)
    assert_same_bits(kernel.tally(f, DeviceRows(tensor)), kernel.tally(f, rows))
    drawn, expected = (
        kernel.draw_pool(np.random.default_rng(0), data, None, 20, f)
        for data in (DeviceRows(tensor), rows)
    )
    np.testing.assert_array_equal(drawn.rows, expected.rows)


def test_a_tensor_on_the_cpu_is_summed_in_place_with_the_same_bits() -> None:
    torch = pytest.importorskip("torch")
    f, X = make_frequencies(3, 20, 0), make_rows(3, 1000, 0, np.float32)
    tensor, expected = torch.tensor(X), ckm.sketch(X, like=f)
    for device in ("auto", "cpu"):
        for rows in (tensor, tensor.requires_grad_(), torch.tensor(X.T.copy()).T, tensor.double()):
            assert ckm.sketch(rows, like=f, device=device) == expected
    assert load_kernel("cpu").tally(f, tensor, None).exact


@pytest.mark.parametrize("n", [1, 4, 90])
@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32", "float64", "int32"])
def test_unit_rows_of_tensors_have_the_bits_of_the_cpu(
    monkeypatch: pytest.MonkeyPatch, kind: str, n: int
) -> None:
    torch = pytest.importorskip("torch")
    from ckm._sources import unit_rows_gpu

    # In several pieces.
    monkeypatch.setattr(unit_rows_gpu, "NUMBERS_AT_ONCE", 30 * n)
    X = torch.tensor(10 * np.random.default_rng(n).normal(size=(100, n))).to(getattr(torch, kind))
    X[3] = 0
    expected = unit_rows(X.float().numpy() if kind == "bfloat16" else X.numpy())
    assert unit_rows_gpu.unit_tensor(X).numpy().tobytes() == expected.tobytes()


def test_huge_tiny_and_missing_rows_of_tensors_have_the_bits_of_the_cpu() -> None:
    torch = pytest.importorskip("torch")
    from ckm._sources.unit_rows_gpu import unit_tensor

    sizes = np.array([1e200, 1e-200, 5e-324, 1e308, 1.0, 2.0**-251, 2.0**500])
    X = sizes[:, None] * np.array([[1.0, -0.5, 0.25]])
    X = np.concatenate([X, [[np.nan, 1e300, 1], [1, -np.inf, np.inf], [0, 0, 0]]])
    np.testing.assert_array_equal(unit_tensor(torch.tensor(X)).numpy(), unit_rows(X))


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
        load_kernel("torch").tally(f, torch.tensor(X), beta),
        load_kernel("numpy").tally(f, X, beta),
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
        load_kernel("torch").tally(make_frequencies(3, 20, 0), torch.tensor(X), None)


# A GPU without Triton, and several GPUs, played by the CPU


class OnTheGpu(Source):
    """Tensors on the CPU that are taken for rows on a GPU, some at a time."""

    columns, device = None, "cpu"

    def __init__(self, X: np.ndarray, weights: np.ndarray | None = None, step: int = 700) -> None:
        self._rows = torch_of(X)
        self._weights = weights
        self._rows_at_once = step
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
    labels, sse = Centroids(C).assign(OnTheGpu(X, beta))
    expected, other = Centroids(C).assign(ArraySource(X, weights=beta))
    assert isinstance(labels, torch.Tensor)
    assert labels.dtype == torch.int32
    np.testing.assert_array_equal(labels.numpy(), expected)
    assert sse == pytest.approx(other, rel=1e-12)


def test_labels_without_triton_name_what_is_not_finite() -> None:
    X = np.ones((3000, 2), np.float32)
    X[2345, 1] = np.nan
    with pytest.raises(NonFiniteError, match="Row 2345, column 1 holds NaN"):
        Centroids(np.eye(2)).label(OnTheGpu(X))


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


class Gpus(NamedTuple):
    """Two GPUs, without Triton, that the CPU plays: a kernel for both, one for the second alone,
    and how many blocks each GPU has summed.
    """

    kernel: "GpuKernel"
    second: "GpuKernel"
    streams: "StreamPool"
    used: Counter[str]


class CpuLane:
    """A lane of a GPU that the CPU plays."""

    stream = None

    def __init__(self, device: Any) -> None:
        self.device = device

    def copied(self, name: str, array: np.ndarray) -> Any:
        return torch_of(array)


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> Gpus:
    """Two GPUs that the CPU plays."""
    torch = pytest.importorskip("torch")
    from ckm._kernels.gpu.kernel import GpuKernel
    from ckm._kernels.gpu.streams import StreamPool
    from ckm._kernels.torch import tally as plain_tally

    used = Counter[str]()
    running = ContextVar[str]("running")

    def tally(frequencies: Any, rows: Any, weights: Any) -> Any:
        used[running.get()] += 1
        return plain_tally(frequencies, rows, weights)

    @contextmanager
    def on(device: Any) -> Iterator[None]:
        token = running.set(str(device))
        yield
        running.reset(token)

    for name, fake in {
        "device_count": lambda: 2,
        "get_device_properties": lambda device: SimpleNamespace(total_memory=2**34),
        "stream": lambda stream: nullcontext(),
        "device": on,
    }.items():
        monkeypatch.setattr(torch.cuda, name, fake)
    streams = StreamPool(CpuLane)
    options: dict[str, Any] = {
        "streams": streams,
        "has_triton": lambda device: False,
        "plain_tally": tally,
        "staged_bytes": 2**19,
    }
    second = GpuKernel(torch.device("cuda", 1), **options)
    return Gpus(GpuKernel(**options), second, streams, used)


def state_of(kernel: Kernel, f: ckm.Frequencies, X: np.ndarray, n_threads: int) -> State:
    """What `ckm.sketch` adds up with that kernel."""
    plan = kernel.plan(X.shape[1], n_threads)
    blocks = split_blocks(ArraySource(X).chunks(), size=plan.block_rows)
    sketch_block = BlockSketcher(kernel, Design(f))
    return accumulate(sketch_block, blocks, State.empty(Design(f), 0), n_threads=plan.threads)


def test_several_gpus_share_the_blocks(two_gpus: Gpus) -> None:
    f, X = make_frequencies(8, 20, 0), make_rows(8, 200_000, 0, np.float32)
    expected = ckm.sketch(X, like=f, device="cpu")
    found = ckm.Sketch(f, state_of(two_gpus.kernel, f, X, 4).tally)
    assert found.count == len(X)
    np.testing.assert_allclose(found.z, expected.z, rtol=0, atol=1e-6)
    assert sum(two_gpus.used.values()) == 13  # 200 000 rows, 16 384 at a time
    assert min(two_gpus.used["cuda:0"], two_gpus.used["cuda:1"]) >= 1
    assert found == ckm.Sketch(f, state_of(two_gpus.kernel, f, X, 2).tally)


def test_one_of_several_gpus_can_be_asked_for(two_gpus: Gpus) -> None:
    f, X = make_frequencies(8, 20, 0), make_rows(8, 100_000, 0, np.float32)
    assert state_of(two_gpus.second, f, X, 4).tally.count == len(X)
    assert dict(two_gpus.used) == {"cuda:1": 7}


def test_without_triton_the_cpu_computes_cells(two_gpus: Gpus) -> None:
    X = make_rows(3, 1000, 0, np.float32)
    anchors = Anchors.on_grids(X[:40], np.ones(3), np.ones(3), 1.0)
    assert not two_gpus.kernel.keeps_cells
    found = two_gpus.kernel.tally_cells(anchors, np.zeros(3), X)
    assert found.identity() == tally_cells(anchors, np.zeros(3), X).identity()


def test_lanes_go_to_the_gpu_with_the_fewest(two_gpus: Gpus) -> None:
    lane = two_gpus.streams.lane
    with lane() as first, lane() as second, lane() as third:
        assert {str(first.device), str(second.device)} == {"cuda:0", "cuda:1"}
        assert third is not first
    with lane(second.device) as again:
        assert again in (first, second, third)


def test_kernels_of_a_gpu_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    from ckm._kernels.gpu.streams import StreamPool

    class Stream:
        """One for each thread, which writes down its calls."""

        def wait_event(self, event: str) -> None:
            calls.append(f"wait for {event}")

        def record_event(self) -> str:
            calls.append(f"end {threading.current_thread().name}")
            return threading.current_thread().name

    def work() -> None:
        with streams.in_turn("gpu"):
            calls.append(f"begin {threading.current_thread().name}")
            time.sleep(0.01)

    calls = list[str]()
    streams = StreamPool()
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: Stream())
    threads = [threading.Thread(target=work, name=name) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    order = [line[-1] for line in calls if line.startswith("begin")]
    first, second, third = order
    assert sorted(order) == ["a", "b", "c"]
    assert calls == [
        f"begin {first}",
        f"end {first}",
        f"wait for {first}",
        f"begin {second}",
        f"end {second}",
        f"wait for {second}",
        f"begin {third}",
        f"end {third}",
    ]


def test_rows_that_are_on_a_gpu_wait_for_their_turn(
    two_gpus: Gpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = list[str]()

    @contextmanager
    def in_turn(device: Any) -> Iterator[None]:
        turns.append(str(device))
        yield

    monkeypatch.setattr(two_gpus.streams, "in_turn", in_turn)
    f, X = make_frequencies(3, 20, 0), make_rows(3, 500, 0, np.float32)
    there = two_gpus.kernel.tally(f, DeviceRows(torch_of(X)))
    here = two_gpus.kernel.tally(f, X)
    assert turns == ["cpu"]
    np.testing.assert_array_equal(there.sums, here.sums)


def test_workers_without_a_gpu_refuse_to_be_one(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    f, X = make_frequencies(3, 20, 0), make_rows(3, 5000, 0, np.float32)
    with pytest.raises(ParameterError, match="torch finds none here"):
        SketchJob(Design(f), "cuda").of_partition(
            0, iter([Chunk(X, None, Place(), Place(row=len(X)))])
        )
