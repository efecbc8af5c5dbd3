"""Data on a GPU: tensors of torch, CuPy and JAX, which stay where they are; choice of a device."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from ckm._messages import Argument
from ckm._util.arrays import Array
from ckm._util.sparse import SparseRows
from ckm.errors import MissingPackageError, ParameterError

# Libraries whose arrays on a GPU are taken by DLPack.
_DLPACK_PACKAGES = {"cupy", "jax", "jaxlib"}
_DLPACK_CPU = 1  # DLPack's number for the CPU
_TRITON_CAPABILITY = (7, 0)  # the oldest compute capability that Triton compiles for

# Bytes of rows on a GPU that are processed at once: enough to keep it busy, and little beside its
# memory.
DEVICE_BYTES = 2**30
# Rows that are processed at once: at least enough to be worth a launch. There is a limit for data
# of few columns, as results per row (labels, keys) take memory as well.
_MIN_ROWS = 2**14
_MAX_ROWS = 2**24

_DEVICE_NAME = re.compile("auto|cpu|cuda(:[0-9]+)?")


class DeviceRows:
    """Rows on a GPU, with as much of NumPy's interface as is needed to slice and sample them.

    Conversion to a NumPy array copies them to the CPU.

    Parameters
    ----------
    tensor : torch.Tensor (N, n)
        The rows.
    ready : torch.cuda.Event, optional
        The event after which other streams may read the tensor.
    """

    __slots__ = ("ready", "tensor")

    def __init__(self, tensor: Any, ready: Any = None) -> None:
        self.tensor = tensor
        self.ready = ready

    @classmethod
    def of(cls, data: Any) -> "DeviceRows":
        """The rows of an array or tensor that the current stream may still be writing."""
        import torch

        tensor = as_tensor(data)
        return cls(tensor, torch.cuda.current_stream(tensor.device).record_event())

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of rows and of columns."""
        return tuple(self.tensor.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy type; float32 for types that NumPy lacks, such as bfloat16."""
        name = str(self.tensor.dtype).removeprefix("torch.")
        # NumPy knows this name once another package, such as JAX, has added it: as raw bytes.
        if name == "bfloat16":
            return np.dtype(np.float32)
        try:
            return np.dtype(name)
        except TypeError:
            return np.dtype(np.float32)

    def __len__(self) -> int:
        return int(self.tensor.shape[0])

    def __getitem__(self, which: Any) -> "DeviceRows":
        """A slice of rows, without a copy, or the rows of some indices or of a mask, copied."""
        if isinstance(which, slice):
            return DeviceRows(self.tensor[which], self.ready)
        import torch

        indices = torch.as_tensor(np.asarray(which), device=self.tensor.device)
        return DeviceRows.of(self.synchronized()[indices])

    def __truediv__(self, units: Array) -> "DeviceRows":
        import torch

        divisor = torch.tensor(units, dtype=torch.float64, device=self.tensor.device)
        return DeviceRows.of(self.synchronized().double() / divisor)

    def synchronized(self) -> Any:
        """The tensor, after making the current stream wait until it may be read."""
        if self.ready is not None:
            self.ready.wait()
        return self.tensor

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        tensor = self.synchronized().detach()
        if "bfloat16" in str(tensor.dtype):
            tensor = tensor.float()
        array: Array = tensor.cpu().numpy()
        return array if dtype is None else array.astype(dtype)

    def astype(self, dtype: Any) -> Array:
        """A copy on the CPU, as a NumPy array of another type."""
        return self.__array__(dtype)


def as_floats(tensor: Any) -> Any:
    """A tensor in float32 or float64: half precision becomes float32, which is exact, and other
    numbers float64.
    """
    import torch

    if tensor.dtype in (torch.float32, torch.float64):
        return tensor
    is_half = tensor.dtype in (torch.float16, torch.bfloat16)
    return tensor.float() if is_half else tensor.double()


def rows_at_once(n_features: int, n_bytes: int = DEVICE_BYTES) -> int:
    """The number of float32 rows that are processed at once, for a budget of bytes."""
    rows = n_bytes // (4 * n_features)
    return max(_MIN_ROWS, min(_MAX_ROWS, rows - rows % _MIN_ROWS))


def concatenate_rows(tables: list[Any]) -> Any:
    """Concatenate tables of rows; on the GPU if all of them are there, sparse if one is."""
    if any(isinstance(table, SparseRows) for table in tables):
        return SparseRows.joined(tables)
    if all(isinstance(table, DeviceRows) for table in tables):
        import torch

        return DeviceRows.of(torch.cat([table.synchronized() for table in tables]))
    return np.concatenate(tables)


def to_host(data: Any) -> Any:
    """Copy data on a GPU to a NumPy array; other data is returned as it is."""
    return np.asarray(DeviceRows(as_tensor(data))) if is_on_gpu(data) else data


def is_tensor(data: Any) -> bool:
    """Whether `data` is a torch tensor; torch is not imported."""
    return type(data).__module__.split(".")[0] == "torch" and hasattr(data, "detach")


def brain_float_bits(tensor: Any) -> Array:
    """The bits of a tensor in bfloat16 on the CPU, without a copy."""
    import torch

    bits: Array = tensor.detach().view(torch.int16).numpy()
    return bits.view(np.uint16)


def is_on_gpu(data: Any) -> bool:
    """Whether `data` is an array of torch, CuPy or JAX on a GPU; nothing is imported."""
    if is_tensor(data):
        return str(data.device.type) == "cuda"
    packages = {kind.__module__.split(".")[0] for kind in type(data).__mro__}
    if not packages & _DLPACK_PACKAGES or not hasattr(data, "__dlpack_device__"):
        return False
    return int(data.__dlpack_device__()[0]) != _DLPACK_CPU


def current_gpu() -> Any:
    """The GPU that torch uses by default, or None."""
    import torch

    if not torch.cuda.is_available():
        return None
    return torch.device("cuda", torch.cuda.current_device())


@contextmanager
def use_gpu(device: Any) -> Iterator[None]:
    """Make a GPU the current one inside the block; None changes nothing."""
    if device is None:
        yield
        return
    import torch

    with torch.cuda.device(device):
        yield


@cache
def has_triton(device: Any) -> bool:
    """Whether Triton is installed and compiles for this device."""
    import torch

    return (
        str(device.type) == "cuda"
        and find_spec("triton") is not None
        and torch.cuda.get_device_capability(device) >= _TRITON_CAPABILITY
    )


def as_tensor(data: Any) -> Any:
    """A torch tensor that shares the memory of `data`."""
    import torch

    return data.detach() if is_tensor(data) else torch.from_dlpack(data)


def check_device(device: Any) -> None:
    """Require the name of a device; whether this machine has that device is not checked."""
    if not isinstance(device, str) or _DEVICE_NAME.fullmatch(device) is None:
        name = " ".join(repr(device).split())
        raise ParameterError(
            f"There is no device {name}; choose one of 'auto', 'cpu', 'cuda', 'cuda:0', 'cuda:1', "
            "and so on."
        )


def resolve_device(device: str, rows_device: Any = None) -> Any:
    """The `torch.device` that the argument `device` names, or None for the CPU.

    "auto" is the device of the rows, `rows_device`, without its index: rows on several GPUs stay
    where they are. A device that this machine does not have is an error.
    """
    check_device(device)
    if device == "cpu" or (device == "auto" and rows_device is None):
        return None
    if device == "auto":
        import torch

        return torch.device(torch.device(rows_device).type)
    asked = Argument("device", device)
    try:
        import torch
    except ModuleNotFoundError:
        raise MissingPackageError(
            asked,
            " needs torch, which is not installed; run: pip install 'compressive-kmeans[gpu]'.",
        ) from None
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not count:
        raise ParameterError(
            asked,
            " asks for a GPU, and torch finds none here; use ",
            Argument("device", "cpu"),
            ".",
        )
    found = torch.device(device)
    if found.index is not None and found.index >= count:
        names = ", ".join(f"cuda:{i}" for i in range(count))
        raise ParameterError(asked, f" is not there; torch finds {names}.")
    return found
