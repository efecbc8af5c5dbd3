"""Files of labels, and how they are written: as CSV, `.npy` or Parquet."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol

import numpy as np

from ckm._util.arrays import Array
from ckm._util.files import atomic_file
from ckm.errors import OutputError


class LabelWriter(Protocol):
    """Takes labels block by block; `finish` completes the file."""

    def write(self, labels: Array) -> None:
        """Append labels."""

    def finish(self) -> None:
        """Write what is still held back."""


class _CsvLabels:
    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        file.write(b"cluster\n")

    def write(self, labels: Array) -> None:
        self._file.write("".join(f"{label}\n" for label in labels.tolist()).encode())

    def finish(self) -> None:
        pass


class _NpyLabels:
    """The header needs the number of rows, which is known last: NumPy pads it so that a longer one
    fits in the same place.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._rows = file, 0
        self._start = self._write_header()

    def write(self, labels: Array) -> None:
        self._file.write(labels.astype("<i4").tobytes())
        self._rows += len(labels)

    def finish(self) -> None:
        self._file.seek(0)
        if self._write_header() != self._start:
            raise OutputError("The .npy header outgrew its place; write .csv or .parquet instead.")

    def _write_header(self) -> int:
        np.lib.format.write_array_header_1_0(
            self._file, {"descr": "<i4", "fortran_order": False, "shape": (self._rows,)}
        )
        return self._file.tell()


class _ParquetLabels:
    """Row groups of a million labels: small ones would cost more than they hold."""

    def __init__(self, file: BinaryIO) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._schema = pa.schema([("cluster", pa.int32())])
        self._writer, self._waiting, self._rows = (
            pq.ParquetWriter(file, self._schema),
            list[Array](),
            0,
        )

    def write(self, labels: Array) -> None:
        self._waiting.append(labels)
        self._rows += len(labels)
        if self._rows >= 2**20:
            self._flush()

    def finish(self) -> None:
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        import pyarrow as pa

        if self._waiting:
            self._writer.write_table(
                pa.table({"cluster": np.concatenate(self._waiting)}, schema=self._schema)
            )
        self._waiting, self._rows = [], 0


_WRITERS: dict[str, Callable[[BinaryIO], LabelWriter]] = {
    ".csv": _CsvLabels,
    ".npy": _NpyLabels,
    ".parquet": _ParquetLabels,
}


@contextmanager
def writing_labels(path: Path) -> Iterator[LabelWriter]:
    """A writer whose file appears under its name when the block ends well, and not at all
    otherwise.
    """
    with atomic_file(path) as file:
        writer = _WRITERS[path.suffix.lower()](file)
        yield writer
        writer.finish()
