"""Objects of which ranges of bytes are requested, as files that Arrow and HDF5 can read."""

import io
import random
import time
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Any, TypeVar

import pyarrow as pa

from ckm._util.stores import ATTEMPTS

# Bytes of a read, at least, that is requested as it is. Smaller ones follow one another.
_EXACT_BYTES = 2**14
# Bytes that are requested at a time where less is read.
_BLOCK_BYTES = 2**17
# Blocks that are kept: metadata of HDF5 are all over a file, and read again and again.
_KEPT_BLOCKS = 64
# Seconds before a request is repeated; doubled each time.
_FIRST_WAIT = 0.2

# Words of the message of an answer that did not fit into the bytes asked for.
_UNRECOGNISED = "response stream"

_Result = TypeVar("_Result")


class RangeFile(io.RawIOBase):
    """A file whose bytes are requested from `read_at(offset, count)`; small ones in blocks.

    Parameters
    ----------
    read_at : callable
        Returns exactly the bytes asked for, or raises OSError.
    size : int
        The bytes of the file.
    """

    def __init__(self, read_at: Callable[[int, int], Any], size: int) -> None:
        super().__init__()
        self._read_at = read_at
        self._size = size
        self._position = 0
        self._blocks = OrderedDict[int, bytes]()
        self._lock = Lock()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def size(self) -> int:
        return self._size

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, base + offset)
        return self._position

    def read(self, size: int = -1) -> bytes:
        left = max(0, self._size - self._position)
        count = left if size is None or size < 0 else min(size, left)
        data = self._fetch(self._position, count)
        self._position += len(data)
        return data

    def readall(self) -> bytes:
        return self.read()

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)

    def _fetch(self, offset: int, count: int) -> bytes:
        """The bytes at a position: requested as they are, or of blocks that are kept."""
        if count == 0:
            return b""
        if count >= _EXACT_BYTES:
            return bytes(self._read_at(offset, count))
        with self._lock:
            numbers = range(offset // _BLOCK_BYTES, (offset + count - 1) // _BLOCK_BYTES + 1)
            data = b"".join(map(self._block, numbers))
        start = offset - numbers.start * _BLOCK_BYTES
        return data[start : start + count]

    def _block(self, number: int) -> bytes:
        """The block with this number, kept until others are needed more."""
        block = self._blocks.pop(number, None)
        if block is None:
            low = number * _BLOCK_BYTES
            block = bytes(self._read_at(low, min(_BLOCK_BYTES, self._size - low)))
        self._blocks[number] = block
        if len(self._blocks) > _KEPT_BLOCKS:
            self._blocks.popitem(last=False)
        return block


def as_arrow_file(read_at: Callable[[int, int], bytes], size: int) -> Any:
    """A `pyarrow.NativeFile` of an object of which ranges are requested."""
    return pa.PythonFile(RangeFile(read_at, size), mode="r")


def read_patiently(file: Any, offset: int, count: int) -> Any:
    """Some bytes of a `pyarrow.NativeFile`, requested again where Arrow does not.

    An answer of S3 that reports an error, and is longer than the bytes asked for, is not recognised
    as one that may pass.
    """
    return with_retries(
        lambda: file.read_at(count, offset), lambda error: _UNRECOGNISED not in str(error)
    )


def with_retries(request: Callable[[], _Result], is_final: Callable[[Exception], bool]) -> _Result:
    """The result of a request, which is repeated a limited number of times where it fails.

    `is_final` says of an error whether repeating the request is of no use. The last error says how
    often it was tried.
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return request()
        except (OSError, TimeoutError) as error:
            if is_final(error):
                raise
            if attempt == ATTEMPTS:
                reason = str(error) or type(error).__name__
                raise OSError(f"{reason} (tried {ATTEMPTS} times)") from None
        # Not all at once: other clients wait for the same server.
        time.sleep(_FIRST_WAIT * 2 ** (attempt - 1) * random.uniform(0.5, 1.5))
    raise AssertionError("unreachable")
