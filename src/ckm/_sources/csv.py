"""CSV files, also with tabs (`.tsv`) and compressed (`.csv.gz`, `.csv.zst`), in blocks of whole
lines.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ckm._sources.arrow import ERRORS, unreadable
from ckm._sources.base import (
    BEGINNING,
    Chunk,
    Place,
    Source,
    draw_sample,
    pick_evenly,
    rows_per_chunk,
)
from ckm._sources.columns import ColumnRequest, choose, require_numbers
from ckm._sources.lines import BLOCK, Layout, after_line, layout_of, lines, parse, runs_of
from ckm._sources.paths import ending_of
from ckm._util.arrays import Array
from ckm.errors import InputFileError

_RUNS = 256  # that a sample is cut from
_RUN_BYTES, _KEPT_BYTES = 2**15, 2**17  # at least; and at most, where they wait to be parsed
_FILES = 16  # compressed ones that a sample reads, at least
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}


class CsvSource(Source):
    """CSV files with the same numeric columns. A block of lines is in memory at a time."""

    def __init__(self, paths: Sequence[Path], request: ColumnRequest) -> None:
        self._paths = paths
        self._layouts = [_layout_of_file(path) for path in paths]
        self._choice = choose(request, self._layouts[0].held, str(paths[0]))
        for path, layout in zip(paths[1:], self._layouts[1:], strict=True):
            require_numbers(self._choice, layout.held, str(path))
        self.columns = self._choice.columns
        self.n_features = len(self._choice.names)
        self.n_rows = None if any(layout.mean for layout in self._layouts) else 0
        self._sizes = [path.stat().st_size for path in paths]
        compressed = any(path.suffix.lower() in _COMPRESSIONS for path in paths)
        # places count bytes as they are once unpacked
        self.n_bytes = None if compressed else sum(self._sizes)
        self.parts = tuple(map(str, paths))

    def chunks(self, start: Place = BEGINNING) -> Iterator[Chunk]:
        for i in range(start.part, len(self._paths)):
            place = start if i == start.part else Place(i)
            place = place._replace(byte=max(place.byte, self._layouts[i].header))
            size = min(BLOCK, rows_per_chunk(self.n_features) * self._layouts[i].least)
            with _opened(self._paths[i], place.byte) as file:
                for block in lines(file, size, self.parts[i]):
                    chunk = self._parsed(i, block, place)
                    yield chunk
                    place = chunk.after

    def sample(
        self, size: int, rng: np.random.Generator, weights: Array | None = None
    ) -> tuple[Array, Array]:
        """From runs of lines spread over the files. Compressed files are read to their end for it,
        but few lines are parsed.
        """
        if weights is not None:
            return super().sample(size, rng, weights)
        run = max(_RUN_BYTES, 4 * size * self._layouts[0].mean // _RUNS)
        compressed = any(path.suffix.lower() in _COMPRESSIONS for path in self._paths)
        found = (
            self._runs_of_compressed(min(run, _KEPT_BYTES), rng)
            if compressed
            else self._runs(run, rng)
        )
        try:
            return draw_sample(
                (self._parsed(i, block, Place(i)) for i, block in found), size, self.n_features, rng
            )
        # a run that begins within quotes; if lines are really damaged, reading them all says where
        except InputFileError:
            return super().sample(size, rng)

    def _parsed(self, i: int, block: bytes, place: Place) -> Chunk:
        rows, weights = parse(block, self._layouts[i], self._choice, self.parts[i], place.row)
        return Chunk(
            rows,
            weights,
            place,
            Place(i, place.row + len(rows), place.byte + len(block)),
            self.parts[i],
        )

    def _runs(self, run: int, rng: np.random.Generator) -> Iterator[tuple[int, bytes]]:
        """Lines at places spread over the bytes of all files: small files whole, and everything
        where it is not much more.
        """
        ends = np.cumsum(self._sizes)
        n_picked = max(_RUNS, _RUNS * run // max(1, min(run, int(ends[-1]) // len(ends))))
        if n_picked * run >= ends[-1]:
            yield from (
                (i, block) for i in range(len(ends)) for block in self._lines_from(i, 0, run)
            )
            return
        seen: set[int] = set()
        for at in pick_evenly(int(ends[-1]), n_picked, rng):
            i = int(np.searchsorted(ends, at, side="right"))
            if self._sizes[i] > run:
                yield i, next(self._lines_from(i, int(at - ends[i]) + self._sizes[i], run), b"")
            elif i not in seen:
                yield from ((i, block) for block in self._lines_from(i, 0, run))
            seen.add(i)

    def _lines_from(self, i: int, byte: int, run: int) -> Iterator[bytes]:
        """Blocks of `run` bytes from the first line that begins at or after `byte`."""
        start = max(byte, self._layouts[i].header)
        inside = start > self._layouts[i].header
        # a byte earlier: a line may begin right here
        with _opened(self._paths[i], start - inside) as file:
            for number, block in enumerate(lines(file, run, self.parts[i])):
                yield block[after_line(block) :] if inside and not number else block

    def _runs_of_compressed(
        self, run: int, rng: np.random.Generator
    ) -> Iterator[tuple[int, bytes]]:
        """Lines kept while files go by: every run at first, and one in two of them, and one in two
        of the rest, each time they are many.
        """
        n_picked = max(_FILES, _RUNS * run * len(self._paths) // max(1, sum(self._sizes)))
        kept, met, stride, offset = list[tuple[int, bytes]](), 0, 1, 0
        for i in pick_evenly(len(self._paths), n_picked, rng).tolist():
            with _opened(self._paths[i], self._layouts[i].header) as file:
                for part in (
                    part
                    for block in lines(file, BLOCK, self.parts[i])
                    for part in runs_of(block, run)
                ):
                    if met % stride == offset:
                        kept.append((i, part))
                    met += 1
                    if len(kept) == 2 * _RUNS:
                        half = int(rng.integers(2))
                        kept, stride, offset = kept[half::2], 2 * stride, offset + half * stride
        return iter(kept)


def open_files(paths: Sequence[Path], request: ColumnRequest) -> CsvSource:
    """The rows of CSV files with the same columns."""
    return CsvSource(paths, request)


def _layout_of_file(path: Path) -> Layout:
    with _opened(path, 0) as file:
        return layout_of(file, str(path), "\t" if ending_of(path).startswith(".tsv") else None)


def _opened(path: Path, byte: int) -> Any:
    """The file's bytes from `byte` on, of what it holds when it is compressed."""
    try:
        file = pa.OSFile(str(path))
        compression = _COMPRESSIONS.get(path.suffix.lower())
        if compression is None:
            file.seek(byte)
            return closing(file)
        file = pa.CompressedInputStream(file, compression)
        while byte > 0 and (skipped := file.read(min(byte, BLOCK))):
            byte -= len(skipped)
        return closing(file)
    except ERRORS as error:
        raise unreadable(error, str(path)) from error
