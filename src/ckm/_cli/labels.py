"""Files of labels: CSV, `.npy` or Parquet, written block by block."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Protocol

import numpy as np

from ckm._util.address import Address
from ckm._util.arrays import LabelArray
from ckm._util.files import atomic_file
from ckm.errors import OutputError

# Labels per row group of a Parquet file; smaller groups would cost more than they hold.
_ROW_GROUP_LABELS = 2**20


class _LabelWriter(Protocol):
    """Takes labels block by block; `finish` completes the file, `abandon` leaves it incomplete."""

    def write(self, labels: LabelArray) -> None:
        """Append labels."""

    def finish(self) -> None:
        """Write what has not been written yet."""

    def abandon(self) -> None:
        """Write no more, because of an error."""


class _CsvLabels:
    """One label per line under the heading `cluster`."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        file.write(b"cluster\n")

    def write(self, labels: LabelArray) -> None:
        self._file.write("".join(f"{label}\n" for label in labels.tolist()).encode())

    def finish(self) -> None:
        pass

    def abandon(self) -> None:
        pass


class _NpyLabels:
    """An array of int32. Its header needs the number of rows, which is known last: NumPy pads the
    header so that a longer number fits in the same space.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._n_rows = 0
        self._start = self._write_header()

    def write(self, labels: LabelArray) -> None:
        self._file.write(labels.astype("<i4").tobytes())
        self._n_rows += len(labels)

    def finish(self) -> None:
        self._file.seek(0)
        if self._write_header() != self._start:
            raise OutputError("The .npy header outgrew its space; write .csv or .parquet instead.")

    def abandon(self) -> None:
        pass

    def _write_header(self) -> int:
        np.lib.format.write_array_header_1_0(
            self._file, {"descr": "<i4", "fortran_order": False, "shape": (self._n_rows,)}
        )
        return self._file.tell()


class _ParquetLabels:
    """One int32 column `cluster`."""

    def __init__(self, file: BinaryIO) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._schema = pa.schema([("cluster", pa.int32())])
        self._writer = pq.ParquetWriter(file, self._schema)
        self._clear()

    def write(self, labels: LabelArray) -> None:
        self._pending.append(labels)
        self._n_pending += len(labels)
        if self._n_pending >= _ROW_GROUP_LABELS:
            self._flush()

    def finish(self) -> None:
        self._flush()
        self._writer.close()

    def abandon(self) -> None:
        # Else pyarrow closes it when it is collected, writes to a closed file, and prints that.
        with suppress(OSError):
            self._writer.close()

    def _flush(self) -> None:
        import pyarrow as pa

        if self._pending:
            columns = {"cluster": np.concatenate(self._pending)}
            self._writer.write_table(pa.table(columns, schema=self._schema))
        self._clear()

    def _clear(self) -> None:
        self._pending: list[LabelArray] = []
        self._n_pending = 0


_LABEL_WRITERS: dict[str, Callable[[BinaryIO], _LabelWriter]] = {
    ".csv": _CsvLabels,
    ".npy": _NpyLabels,
    ".parquet": _ParquetLabels,
}


@contextmanager
def open_labels(path: Path | Address | None) -> Iterator[Callable[[LabelArray], None] | None]:
    """Open a file of labels and yield the function that appends to it; None without a file.

    The file appears under its name when the block ends without an error, and not at all otherwise.
    """
    if path is None:
        yield None
        return
    with atomic_file(path) as file:
        writer = _LABEL_WRITERS[path.suffix.lower()](file)
        try:
            yield writer.write
        except BaseException:
            writer.abandon()
            raise
        writer.finish()
