"""Rows on a card: tensors of torch, CuPy and JAX that stay where they are."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from ckm._messages import Argument
from ckm._util.arrays import Array
from ckm.errors import MissingPackageError, ParameterError

_WITH_DLPACK = {"cupy", "jax", "jaxlib"}
_CPU = 1  # DLPack's name for it
_CAPABLE = (7, 0)  # cards that Triton compiles for

DEVICE_BYTES = 2**30  # of rows on a card that are taken at once
_LEAST, _MOST = 2**14, 2**24  # and rows


class DeviceRows:
    """A table on a card: enough of an array to be cut, sampled and passed on. Whoever needs its
    numbers gets a copy on the CPU.

    `ready` is the event after which other streams may read it, where it was recorded.
    """

    __slots__ = ("ready", "tensor")

    def __init__(self, tensor: Any, ready: Any = None) -> None:
        self.tensor, self.ready = tensor, ready

    @classmethod
    def of(cls, data: Any) -> "DeviceRows":
        """The rows of a tensor that the current stream may still be writing."""
        import torch

        tensor = as_tensor(data)
        return cls(tensor, torch.cuda.current_stream(tensor.device).record_event())

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""
        return tuple(self.tensor.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's name for the numbers; bfloat16 and other short ones, which it lacks, count as
        float32.
        """
        try:
            return np.dtype(str(self.tensor.dtype).removeprefix("torch."))
        except TypeError:
            return np.dtype(np.float32)

    def __len__(self) -> int:
        return int(self.tensor.shape[0])

    def __getitem__(self, which: Any) -> "DeviceRows":
        """A slice of rows (nothing is copied), or those at some indices or under a mask (copied on
        the card).
        """
        if isinstance(which, slice):
            return DeviceRows(self.tensor[which], self.ready)
        import torch

        return DeviceRows.of(
            self.synchronized()[torch.as_tensor(np.asarray(which), device=self.tensor.device)]
        )

    def __truediv__(self, units: Array) -> "DeviceRows":
        import torch

        return DeviceRows.of(
            self.synchronized().double()
            / torch.tensor(units, dtype=torch.float64, device=self.tensor.device)
        )

    def synchronized(self) -> Any:
        """The tensor, once the current stream may read it."""
        if self.ready is not None:
            self.ready.wait()
        return self.tensor

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        tensor = self.synchronized().detach()
        found: Array = (tensor.float() if "bfloat16" in str(tensor.dtype) else tensor).cpu().numpy()
        return found if dtype is None else found.astype(dtype)

    def astype(self, dtype: Any) -> Array:
        """A copy on the CPU, of another type."""
        return self.__array__(dtype)


def rows_at_once(n_features: int, n_bytes: int = DEVICE_BYTES) -> int:
    """How many float32 rows are taken at once: enough to be worth a launch."""
    rows = n_bytes // (4 * n_features)
    return max(_LEAST, min(_MOST, rows - rows % _LEAST))


def concatenate_rows(tables: list[Any]) -> Any:
    """The rows of all tables, one after another: on the card where all of them are."""
    if all(isinstance(table, DeviceRows) for table in tables):
        import torch

        return DeviceRows.of(torch.cat([table.synchronized() for table in tables]))
    return np.concatenate(tables)


def to_host(data: Any) -> Any:
    """What is on a card as an array on the CPU; anything else as it is."""
    return np.asarray(DeviceRows(as_tensor(data))) if is_on_gpu(data) else data


def is_tensor(data: Any) -> bool:
    """Whether it is a torch tensor, told without torch."""
    return type(data).__module__.split(".")[0] == "torch" and hasattr(data, "detach")


def is_on_gpu(data: Any) -> bool:
    """Whether it is a tensor of torch, CuPy or JAX that is not in the CPU's memory. Nothing is
    imported to find out.
    """
    if is_tensor(data):
        return str(data.device.type) == "cuda"
    names = {kind.__module__.split(".")[0] for kind in type(data).__mro__}
    if not names & _WITH_DLPACK or not hasattr(data, "__dlpack_device__"):
        return False
    return int(data.__dlpack_device__()[0]) != _CPU


def current_gpu() -> Any:
    """The card that torch would use, or None."""
    import torch

    return torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_available() else None


@contextmanager
def use_gpu(device: Any) -> Iterator[None]:
    """With this card as the current one, if it is one."""
    if device is None:
        yield
        return
    import torch

    with torch.cuda.device(device):
        yield


@cache
def has_triton(device: Any) -> bool:
    """Whether there is a Triton that compiles for that device."""
    import torch

    return (
        str(device.type) == "cuda"
        and find_spec("triton") is not None
        and torch.cuda.get_device_capability(device) >= _CAPABLE
    )


def as_tensor(data: Any) -> Any:
    """A torch tensor of the same memory."""
    import torch

    return data.detach() if is_tensor(data) else torch.from_dlpack(data)


_CHOICES = re.compile("auto|cpu|cuda(:[0-9]+)?")


def check_device(device: Any) -> None:
    """Refuse what is not the name of a device; whether there is such a device is not looked at."""
    if not isinstance(device, str) or _CHOICES.fullmatch(device) is None:
        name = " ".join(repr(device).split())
        raise ParameterError(
            f"There is no device {name}; choose one of 'auto', 'cpu', 'cuda', 'cuda:0', 'cuda:1', "
            "and so on."
        )


def resolve_device(device: str, rows_device: Any = None) -> Any:
    """The `torch.device` that is meant, or None for the CPU.

    "auto" is where the rows are: `rows_device`, without its index, since rows on several GPUs stay
    where they are. A device that is not there is an error.
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
