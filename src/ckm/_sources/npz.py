"""Sparse matrices in files, as `scipy.sparse.save_npz` writes them (`.npz`).

Of a matrix in CSR only where its rows begin is in memory, and a chunk of its numbers. Files that
are not compressed (`compressed=False`) are read from anywhere, others from their beginning. Other
formats are loaded and converted, one file at a time.
"""

import struct
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from zlib import error as ZlibError

import numpy as np

from ckm._sources.base import BEGINNING, Chunk, Place, Source, require_numeric, require_table
from ckm._sources.column_request import ColumnRequest
from ckm._sources.failures import is_failed_request, unreadable
from ckm._sources.sampling import pick_parts
from ckm._sources.settings import ReadSettings
from ckm._sources.sparse import sparse_cuts
from ckm._util.arrays import Array, FloatArray, IntArray
from ckm._util.sparse import SparseRows
from ckm._util.stores import (
    FilePath,
    RemoteFile,
    any_remote,
    file_size,
    map_files,
    open_seekable,
    require_unchanged,
)
from ckm.errors import DataError, InputFileError

_ERRORS = (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, ZlibError, struct.error)
# The rows that a sample may read are cut into this many runs.
_SAMPLED_RUNS = 256
# Bytes of the header of a member of a zip file, before its name, and where the lengths of the name
# and of the extra field are in it.
_LOCAL_HEADER_BYTES = 30
_LOCAL_LENGTHS = 26
# Bytes that are skipped at a time in a compressed member.
_SKIPPED_BYTES = 2**20


class _Member:
    """An array in a zip file, of which runs of numbers are read."""

    def __init__(self, file: IO[bytes], archive: zipfile.ZipFile, name: str) -> None:
        self._file = file
        self._archive = archive
        self._info = archive.getinfo(f"{name}.npy")
        self.is_stored = self._info.compress_type == zipfile.ZIP_STORED
        self._rewind()
        self._start = self._position
        if self.is_stored:
            file.seek(self._info.header_offset + _LOCAL_LENGTHS)
            lengths = struct.unpack("<HH", file.read(4))
            self._offset = self._info.header_offset + _LOCAL_HEADER_BYTES + sum(lengths)

    def _rewind(self) -> None:
        """Open the member again, and read its header."""
        self._stream = self._archive.open(self._info)
        version = np.lib.format.read_magic(self._stream)
        if version[0] > 1:
            raise ValueError(f"version {version} of the format is not that of an array of numbers")
        shape, _, self.dtype = np.lib.format.read_array_header_1_0(self._stream)
        if len(shape) != 1 or self.dtype.hasobject:
            raise ValueError("its arrays are not those of a sparse matrix")
        self.length = int(shape[0])
        self._position = self._stream.tell()

    def read(self, low: int, high: int) -> Array:
        """Read the numbers from `low` to `high`."""
        first = self._start + low * self.dtype.itemsize
        count = (high - low) * self.dtype.itemsize
        if self.is_stored:
            self._file.seek(self._offset + first)
            data = self._file.read(count)
        else:
            self._skip_to(first)
            data = self._stream.read(count)
            self._position += len(data)
        if len(data) < count:
            raise EOFError("it ends before the last number")
        return np.frombuffer(data, self.dtype)

    def _skip_to(self, position: int) -> None:
        """Decompress what comes before a position."""
        if position < self._position:
            self._rewind()
        while self._position < position:
            skipped = self._stream.read(min(_SKIPPED_BYTES, position - self._position))
            if not skipped:
                raise EOFError("it ends before the last number")
            self._position += len(skipped)


class _MatrixFile:
    """One file: its shape, its type, and where its rows begin."""

    def __init__(self, path: FilePath) -> None:
        self.path = path
        with _explained(path), _opened(path) as (file, archive):
            names = {name.removesuffix(".npy") for name in archive.namelist()}
            if not {"format", "shape"} <= names:
                raise InputFileError(
                    f"Cannot read {path}: it holds {', '.join(sorted(names)) or 'nothing'}, not a "
                    f"sparse matrix; write one with scipy.sparse.save_npz(name, matrix), or one "
                    f"array with np.save(name, array)."
                )
            self.is_csr = _read_array(archive, "format").item() in (b"csr", "csr")
            self.shape = tuple(map(int, _read_array(archive, "shape")))
            require_table(self.shape, str(path))
            data = _Member(file, archive, "data")
            self.dtype = data.dtype
            require_numeric(self.dtype, str(path))
            self.is_random_access = self.is_csr and data.is_stored
            self.starts: IntArray = np.zeros(0, np.int64)
            if self.is_csr:
                self.starts = _read_array(archive, "indptr").astype(np.int64)
                self._check(min(data.length, _Member(file, archive, "indices").length))

    def _check(self, length: int) -> None:
        """Require that rows begin one after another, among so many numbers."""
        starts = self.starts
        is_right = len(starts) == self.shape[0] + 1 and starts[0] == 0 and starts[-1] <= length
        if not is_right or (np.diff(starts) < 0).any():
            raise ValueError("its rows do not follow each other")

    @contextmanager
    def open(self) -> Iterator["_Reader"]:
        """Open the file for one pass."""
        with _explained(self.path), _opened(self.path) as (file, archive):
            if self.is_csr:
                members = (_Member(file, archive, "data"), _Member(file, archive, "indices"))
                yield _Reader(self, members)
                return
        # Rows of other formats cannot be read alone.
        from scipy.sparse import load_npz

        with _explained(self.path), _open_bytes(self.path) as whole:
            yield _Loaded(self, load_npz(whole).tocsr())


class _Reader:
    """Reads rows of an open file in CSR."""

    def __init__(self, matrix: _MatrixFile, members: tuple[_Member, _Member]) -> None:
        self._matrix = matrix
        self._data, self._indices = members
        self.starts = matrix.starts

    def rows(self, low: int, high: int) -> SparseRows:
        """Read the rows from `low` to `high`."""
        from scipy.sparse import csr_array

        starts = self.starts[low : high + 1]
        first, end = int(starts[0]), int(starts[-1])
        with _explained(self._matrix.path):
            values = self._data.read(first, end)
            columns = self._indices.read(first, end)
        n = self._matrix.shape[1]
        if len(columns) and not (columns.min() >= 0 and columns.max() < n):
            raise InputFileError(
                f"Cannot read {self._matrix.path}: rows {low} to {high} have a number in column "
                f"{columns.max() if columns.max() >= n else columns.min()}, of {n}; write it again."
            )
        return SparseRows.of(csr_array((values, columns, starts - first), (high - low, n)))


class _Loaded(_Reader):
    """A matrix of another format, as a whole in memory."""

    def __init__(self, matrix: _MatrixFile, csr: Any) -> None:
        self._rows = SparseRows.of(csr)
        self.starts = self._rows.starts

    def rows(self, low: int, high: int) -> SparseRows:
        rows: SparseRows = self._rows[low:high]
        return rows


class SparseFilesSource(Source):
    """Rows of sparse matrices in files, of the same width."""

    n_rows: int

    def __init__(self, files: Sequence[_MatrixFile], settings: ReadSettings) -> None:
        width = files[0].shape[1]
        for file in files:
            if file.shape[1] != width:
                raise DataError(
                    f"{file.path} has {file.shape[1]} columns where {files[0].path} has {width}; "
                    f"give matrices of one width."
                )
        self.settings = settings
        self._files = files
        self.columns = None
        self.n_features = width
        self.n_rows = sum(file.shape[0] for file in files)
        self.n_bytes = sum(file_size(file.path) for file in files)
        self.parts = tuple(str(file.path) for file in files)

    def stay_sparse(self) -> bool:
        self.is_sparse = True
        return True

    def chunks(self, start: Place = BEGINNING) -> Iterator[Chunk]:
        for i in range(start.part, len(self._files)):
            with self._files[i].open() as reader:
                first = start.row if i == start.part else 0
                for low, high in self._cuts(reader.starts, first):
                    yield self._fetch(reader, i, low, high)
            require_unchanged(self._files[i].path)

    def sample_rows(
        self, size: int, rng: np.random.Generator, weights: FloatArray | None = None
    ) -> tuple[Any, FloatArray]:
        """Draw rows from runs of rows all over the files, if they are not compressed."""
        if weights is not None or not all(file.is_random_access for file in self._files):
            return super().sample_rows(size, rng, weights)
        step = max(1, 4 * size // _SAMPLED_RUNS)
        runs = [(i, low) for i, f in enumerate(self._files) for low in range(0, f.shape[0], step)]
        picked = pick_parts(len(runs), self.n_rows, size, self.n_features, rng, self.settings)
        return self._draw(self._fetch_runs([runs[number] for number in picked], step), size, rng)

    def _fetch_runs(self, runs: Sequence[tuple[int, int]], step: int) -> Iterator[Chunk]:
        """Yield the rows of runs (file, first row) of `step` rows."""
        for i, low in runs:
            with self._files[i].open() as reader:
                yield self._fetch(reader, i, low, min(low + step, self._files[i].shape[0]))

    def _cuts(self, starts: IntArray, row: int) -> Iterator[tuple[int, int]]:
        """Where the chunks of a file begin and end, from a row on."""
        if self.is_sparse:
            yield from sparse_cuts(starts, self.settings, row)
            return
        step = self.chunk_rows
        for low in range(row, len(starts) - 1, step):
            yield low, min(low + step, len(starts) - 1)

    def _fetch(self, reader: _Reader, i: int, low: int, high: int) -> Chunk:
        rows: Any = reader.rows(low, high)
        if not self.is_sparse:
            rows = np.asarray(rows)
        return Chunk(rows, None, Place(i, low), Place(i, high), self.parts[i])


def open_files(
    paths: Sequence[FilePath], request: ColumnRequest, settings: ReadSettings
) -> SparseFilesSource:
    """Open files of sparse matrices, one after another."""
    request.refuse_names("A .npz file")
    return SparseFilesSource(map_files(_MatrixFile, paths, any_remote(paths)), settings)


def _open_bytes(path: FilePath) -> Any:
    return path.open("rb") if isinstance(path, Path) else open_seekable(path)


@contextmanager
def _opened(path: FilePath) -> Iterator[tuple[Any, zipfile.ZipFile]]:
    """Open a file twice: for the archive, and for members that are not compressed."""
    with _open_bytes(path) as inside, zipfile.ZipFile(inside) as archive, _open_bytes(path) as file:
        yield file, archive


@contextmanager
def _explained(path: FilePath) -> Iterator[None]:
    """Turn errors of NumPy and of zip files into `InputFileError`, with the name of the file."""
    try:
        yield
    except (InputFileError, DataError):
        raise
    except _ERRORS as error:
        if isinstance(path, RemoteFile) and is_failed_request(error):
            raise unreadable(error, str(path)) from None
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputFileError(
            f"Cannot read {path}: it is damaged or not a sparse matrix ({reason}); write it again "
            f"with scipy.sparse.save_npz(name, matrix)."
        ) from error


def _read_array(archive: zipfile.ZipFile, name: str) -> Array:
    """A whole array of the archive."""
    with archive.open(f"{name}.npy") as stream:
        array: Array = np.lib.format.read_array(stream, allow_pickle=False)
        return array
