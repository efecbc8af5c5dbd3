"""CSV files, also with tabs (`.tsv`) and compressed (`.csv.gz`, `.csv.zst`), in blocks of whole
lines.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing, nullcontext
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from ckm._sources.arrow import ERRORS
from ckm._sources.base import BEGINNING, Chunk, Place, Source
from ckm._sources.column_checks import require_numbers
from ckm._sources.column_request import ColumnRequest
from ckm._sources.columns import choose
from ckm._sources.failures import unreadable
from ckm._sources.lines import Layout, infer_layout, parse, parse_table
from ckm._sources.paths import ending_of
from ckm._sources.records import after_line, split_records, split_runs
from ckm._sources.sampling import pick_evenly
from ckm._sources.settings import ReadSettings
from ckm._util.arrays import FloatArray
from ckm._util.stores import (
    FilePath,
    RemoteFile,
    any_remote,
    file_size,
    map_files,
    open_file,
    open_seekable,
    require_unchanged,
)
from ckm.errors import InputFileError

# A sample is drawn from this many runs of lines, at least.
_SAMPLED_RUNS = 256
# Bytes of a run of a compressed file, at most, since runs are kept until all are known.
_MAX_KEPT_RUN_BYTES = 2**17
# How much longer a run may become until a record ends.
_MAX_RUN_GROWTH = 16
# Compressed files that a sample reads, at least.
_MIN_COMPRESSED_FILES = 16
# Bytes that are decompressed at a time to reach a place in a file.
_SKIPPED_BYTES = 4 * 2**20
# Bytes of a compressed object that are requested at a time.
_REQUESTED_BYTES = 4 * 2**20
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}

# Lines of a file: its number, and their bytes.
_Run = tuple[int, bytes]


class CsvSource(Source):
    """CSV files with the same numeric columns. A block of lines is in memory at a time."""

    def __init__(
        self, paths: Sequence[FilePath], request: ColumnRequest, settings: ReadSettings
    ) -> None:
        self.settings = settings
        self._paths = paths
        layout_of = partial(_layout_of_file, settings=settings)
        self._layouts = map_files(layout_of, paths, any_remote(paths))
        self._layouts[0].warn_of_doubt(str(paths[0]))
        self._choice = choose(request, self._layouts[0].present, str(paths[0]))
        for path, layout in zip(paths[1:], self._layouts[1:], strict=True):
            require_numbers(self._choice, layout.present, str(path))
        self.columns = self._choice.columns
        self.n_features = len(self._choice.names)
        self.n_rows = None if any(layout.mean_bytes for layout in self._layouts) else 0
        self._sizes = [file_size(path) for path in paths]
        self._is_compressed = any(path.suffix.lower() in _COMPRESSIONS for path in paths)
        # Places count bytes after decompression.
        self.n_bytes = None if self._is_compressed else sum(self._sizes)
        self.parts = tuple(map(str, paths))
        self._opened: dict[int, Any] = {}

    def chunks(self, start: Place = BEGINNING) -> Iterator[Chunk]:
        chunk_rows = self.settings.rows_per_chunk(self.n_features)
        for i in range(start.part, len(self._paths)):
            layout = self._layouts[i]
            place = start if i == start.part else Place(i)
            place = place._replace(byte=max(place.byte, layout.header_bytes))
            size = min(self.settings.csv_block_bytes, chunk_rows * layout.min_bytes)
            n_before = place.byte - layout.header_bytes
            with _open_bytes(self._paths[i], place.byte) as file:
                for block in self._split(file, i, size, n_before=n_before):
                    chunk = self._parse(i, block, place)
                    yield chunk
                    place = chunk.after
            require_unchanged(self._paths[i])

    def sample_rows(
        self, size: int, rng: np.random.Generator, weights: FloatArray | None = None
    ) -> tuple[Any, FloatArray]:
        """Draw rows from runs of lines all over the files.

        Compressed files are read to their end for it, but few lines are parsed.
        """
        if weights is not None:
            return super().sample_rows(size, rng, weights)
        enough = 4 * size * self._layouts[0].mean_bytes // _SAMPLED_RUNS
        run_bytes = max(self.settings.csv_run_bytes, enough)
        if self._is_compressed:
            runs = self._runs_of_compressed(min(run_bytes, _MAX_KEPT_RUN_BYTES), rng)
        else:
            runs = self._runs(run_bytes, rng)
        chunks = (self._parse(i, block, Place(i)) for i, block in runs)
        try:
            return self._draw(chunks, size, rng)
        # A run that begins within quotes. If lines are really damaged, reading all of them says
        # where.
        except InputFileError:
            return super().sample_rows(size, rng)

    def table_batches(self) -> Iterator[Any]:
        for i, path in enumerate(self._paths):
            layout = self._layouts[i]
            with _open_bytes(path, layout.header_bytes) as file:
                for block in self._split(file, i, self.settings.csv_block_bytes):
                    yield parse_table(block, layout, layout.names, self.parts[i])

    def _parse(self, i: int, block: bytes, place: Place) -> Chunk:
        """Parse lines of file number `i` that begin at `place`."""
        name = self.parts[i]
        rows, weights = parse(block, self._layouts[i], self._choice, name, place.row)
        after = Place(i, place.row + len(rows), place.byte + len(block))
        return Chunk(rows, weights, place, after, name)

    def _split(
        self, file: Any, i: int, size: int, max_bytes: int | None = None, n_before: int = 0
    ) -> Iterator[bytes]:
        """Split what is read of file number `i` into blocks of records of about `size` bytes."""
        longest = max_bytes or self.settings.max_line_bytes
        delimiter = self._layouts[i].dialect.delimiter
        return split_records(file, size, self.parts[i], longest, delimiter, n_before)

    def _runs(self, run_bytes: int, rng: np.random.Generator) -> Iterator[_Run]:
        """Yield lines at places all over the bytes of all files.

        Small files are read whole, and everything if it is not much more.
        """
        ends = np.cumsum(self._sizes)
        mean_size = int(ends[-1]) // len(ends)
        n_runs = max(_SAMPLED_RUNS, _SAMPLED_RUNS * run_bytes // max(1, min(run_bytes, mean_size)))
        if n_runs * run_bytes >= ends[-1]:
            for i in range(len(ends)):
                yield from ((i, block) for block in self._lines_from(i, 0, run_bytes))
            return
        seen: set[int] = set()
        for at in pick_evenly(int(ends[-1]), n_runs, rng):
            i = int(np.searchsorted(ends, at, side="right"))
            if self._sizes[i] > run_bytes:
                byte = int(at - ends[i]) + self._sizes[i]
                yield i, next(self._lines_from(i, byte, run_bytes), b"")
            elif i not in seen:
                yield from ((i, block) for block in self._lines_from(i, 0, run_bytes))
            seen.add(i)

    def _lines_from(self, i: int, byte: int, run_bytes: int) -> Iterator[bytes]:
        """Yield blocks of `run_bytes` from the first line that begins at or after `byte`."""
        header = self._layouts[i].header_bytes
        start = max(byte, header)
        is_inside = start > header
        # A run that begins within quotes must not be read far.
        max_bytes = _MAX_RUN_GROWTH * run_bytes
        # One byte earlier, since a line may begin at `byte` itself.
        with self._open_run(i, start - is_inside) as file:
            for number, block in enumerate(self._split(file, i, run_bytes, max_bytes)):
                is_cut = is_inside and number == 0
                yield block[after_line(block) :] if is_cut else block

    def _open_run(self, i: int, byte: int) -> Any:
        """Open file number `i` at `byte`, for a run of lines.

        An object is opened once for all its runs, since that takes a request.
        """
        path = self._paths[i]
        if not isinstance(path, RemoteFile):
            return _open_bytes(path, byte)
        if i not in self._opened:
            self._opened[i] = open_seekable(path)
        self._opened[i].seek(byte)
        return nullcontext(self._opened[i])

    def _runs_of_compressed(self, run_bytes: int, rng: np.random.Generator) -> Iterator[_Run]:
        """Keep runs of lines while files are decompressed.

        Every run is kept at first. Each time there are too many, every other one is dropped, and
        from then on twice as few are kept.
        """
        total_bytes = max(1, sum(self._sizes))
        share = _SAMPLED_RUNS * run_bytes * len(self._paths) // total_bytes
        kept = list[_Run]()
        stride = 1
        offset = 0
        runs = self._all_runs(max(_MIN_COMPRESSED_FILES, share), run_bytes, rng)
        for number, run in enumerate(runs):
            if number % stride == offset:
                kept.append(run)
            if len(kept) == 2 * _SAMPLED_RUNS:
                half = int(rng.integers(2))
                kept = kept[half::2]
                offset += half * stride
                stride *= 2
        return iter(kept)

    def _all_runs(self, n_files: int, run_bytes: int, rng: np.random.Generator) -> Iterator[_Run]:
        """Yield all lines of `n_files` files, in runs."""
        for i in pick_evenly(len(self._paths), n_files, rng).tolist():
            with _open_bytes(self._paths[i], self._layouts[i].header_bytes) as file:
                delimiter = self._layouts[i].dialect.delimiter
                for block in self._split(file, i, self.settings.csv_block_bytes):
                    for run in split_runs(block, run_bytes, delimiter):
                        yield i, run


def open_files(
    paths: Sequence[FilePath], request: ColumnRequest, settings: ReadSettings
) -> CsvSource:
    """Open CSV files with the same columns."""
    return CsvSource(paths, request, settings)


def _layout_of_file(path: FilePath, settings: ReadSettings) -> Layout:
    delimiter = "\t" if ending_of(path).startswith(".tsv") else None
    with _open_bytes(path, 0) as file:
        return infer_layout(file, str(path), settings.max_line_bytes, delimiter)


def _open_bytes(path: FilePath, byte: int) -> Any:
    """Open a file at `byte`, which counts after decompression."""
    try:
        file = open_file(path)
        compression = _COMPRESSIONS.get(path.suffix.lower())
        if compression is None:
            file.seek(byte)
            return closing(file)
        if isinstance(path, RemoteFile):
            # Decompression asks for few bytes at a time.
            file = pa.BufferedInputStream(file, _REQUESTED_BYTES)
        file = pa.CompressedInputStream(file, compression)
        while byte > 0:
            skipped = len(file.read(min(byte, _SKIPPED_BYTES)))
            if not skipped:
                break
            byte -= skipped
        return closing(file)
    except ERRORS as error:
        raise unreadable(error, str(path)) from error
