"""Data files: .npy, .csv and .parquet, one or many, by name or glob pattern, read in bounded memory."""

import glob
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from ckm.errors import DataError, InputFileError, MismatchError, MissingFileError, ParameterError
from ckm.pool import Pool
from ckm.readonly import Array
from ckm.sources.arrays import ArraySource
from ckm.sources.base import Source, require_table, rows_per_chunk
from ckm.sources.frames import require_columns

_SAMPLED_GROUPS = 16
_SUFFIXES = (".npy", ".csv", ".parquet")
_CSV_BLOCK = 2**20  # bytes
# A column of a CSV without rows, or without a value in its first block, is null.
_NUMERIC = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal, pa.types.is_null)
_ARROW_ERRORS = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OSError, UnicodeDecodeError)


def open_files(patterns: Sequence[str | Path], columns: Sequence[str] | None = None) -> Source:
    """The rows of all files that `patterns` name, which must be of one kind."""
    paths = resolve(patterns)
    suffixes = sorted({path.suffix.lower() for path in paths})
    if len(suffixes) > 1:
        raise ParameterError(f"These files are of several kinds ({', '.join(suffixes)}); give one kind at a time.")
    if suffixes[0] not in _SUFFIXES:
        raise InputFileError(f"Cannot read {paths[0]}: files must end in {', '.join(_SUFFIXES)}.")
    if suffixes[0] != ".npy":
        return TableSource(paths, columns)
    if columns is not None:
        raise ParameterError("A .npy file has no column names; leave out columns=.")
    return ArraySource([_open_npy(path) for path in paths], names=list(map(str, paths)))


def file_columns(patterns: Sequence[str | Path]) -> tuple[str, ...] | None:
    """The names of all columns in tables, whatever they hold; None for arrays."""
    path = resolve(patterns)[0]
    return None if path.suffix.lower() == ".npy" else tuple(_schema(path).names)


def resolve(patterns: Sequence[str | Path]) -> list[Path]:
    """The files behind names and glob patterns, each known to be there and not empty."""
    paths: list[Path] = []
    for pattern in patterns:
        text = str(pattern)
        found = [text] if Path(text).exists() else sorted(glob.glob(text, recursive=True))
        if not found:
            what = "No file matches" if glob.has_magic(text) else "There is no file"
            raise MissingFileError(f"{what} {text}; check the name, relative to {Path.cwd().name or '/'}/.")
        paths += map(Path, found)
    for path in paths:
        if path.is_dir():
            raise InputFileError(f"{path} is a directory; name its files, for example {path}/*.parquet.")
        if path.stat().st_size == 0:
            raise InputFileError(f"{path} is empty (0 bytes); leave it out, or write it again.")
    return paths


def _open_npy(path: Path) -> Array:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        if "pickle" in str(error).lower() or "object" in str(error).lower():
            reason = "it holds Python objects (a pickle) where numbers are expected"
        else:
            reason = f"it is damaged or not a .npy file ({str(error).splitlines()[0]})"
        raise InputFileError(f"Cannot read {path}: {reason}; write it again with np.save(name, array).") from error
    if not isinstance(array, np.ndarray):
        array.close()
        raise InputFileError(f"Cannot read {path}: it is an archive of several arrays; write one with np.save(name, array).")
    return array


class TableSource(Source):
    """CSV or Parquet files with the same numeric columns, read one batch at a time."""

    def __init__(self, paths: Sequence[Path], columns: Sequence[str] | None = None) -> None:
        self._paths = paths
        self._parquet = paths[0].suffix.lower() == ".parquet"
        present = _schema(paths[0]).names
        self._names = list(present) if columns is None else require_columns(columns, present)
        for path in paths:
            _require_numeric(_schema(path), self._names, path, paths[0])
        require_table((0, len(self._names)), str(paths[0]))
        self.columns = tuple(self._names)
        self.n_features = len(self._names)
        self.n_rows = sum(pq.read_metadata(path).num_rows for path in paths) if self._parquet else None

    def chunks(self) -> Iterator[Array]:
        step = rows_per_chunk(self.n_features)
        for path in self._paths:
            try:
                for batch in self._parquet_batches(path) if self._parquet else self._csv_batches(path):
                    for start in range(0, len(batch), step):
                        yield _to_array(batch.slice(start, step).select(self._names))
            except _ARROW_ERRORS as error:
                raise _readable(error, path) from error

    def _parquet_batches(self, path: Path, groups: list[int] | None = None) -> Iterator[Any]:
        with pq.ParquetFile(path, pre_buffer=False) as file:
            size = rows_per_chunk(self.n_features)
            yield from file.iter_batches(size, row_groups=groups, columns=self._names, use_threads=False)

    def _csv_batches(self, path: Path) -> Iterator[Any]:
        # Whole-number columns may turn out to hold fractions further down.
        types = {f.name: pa.float64() for f in _schema(path) if pa.types.is_integer(f.type) or pa.types.is_null(f.type)}
        convert = pa_csv.ConvertOptions(column_types=types, include_columns=self._names)
        with pa_csv.open_csv(path, read_options=_csv_options(path), convert_options=convert) as reader:
            yield from reader

    def sample(self, size: int, rng: np.random.Generator, weights: Array | None = None) -> tuple[Array, Array]:
        """From Parquet, rows of a few row groups spread over the files; from CSV, by reading it once."""
        if not self._parquet or weights is not None or (self.n_rows or 0) <= size:
            return super().sample(size, rng, weights)
        groups = [(path, i) for path in self._paths for i in range(pq.read_metadata(path).num_row_groups)]
        picked = np.unique(np.linspace(0, len(groups) - 1, _SAMPLED_GROUPS).round().astype(int))
        pool = Pool.empty(size, self.n_features)
        for path, group in (groups[i] for i in picked):
            for batch in self._parquet_batches(path, [group]):
                pool = pool + Pool.draw(rng, _to_array(batch.select(self._names)), None, size)
        return pool.rows, np.ones(len(pool))


def _schema(path: Path) -> Any:
    """Names and types of a table's columns; those of a CSV are inferred from its first block."""
    try:
        if path.suffix.lower() == ".parquet":
            schema = pq.read_schema(path)
        else:
            with pa_csv.open_csv(path, read_options=_csv_options(path)) as reader:
                schema = reader.schema
        schema.names  # noqa: B018  (names that are not UTF-8 are found out here)
        return schema
    except _ARROW_ERRORS as error:
        raise _readable(error, path) from error


def _csv_options(path: Path) -> Any:
    """A first line of numbers is a row, not a header: columns are then called x0, x1, ..."""
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        header = [name.strip().strip('"') for name in file.readline().rstrip("\r\n").split(",")]
    names = [f"x{i}" for i in range(len(header))] if all(map(_is_number, header)) else None
    return pa_csv.ReadOptions(column_names=names, block_size=_CSV_BLOCK)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _require_numeric(schema: Any, names: Sequence[str], path: Path, first: Path) -> None:
    """Refuse a file that lacks a column, or has something else than numbers in it."""
    for name in names:
        if schema.names.count(name) != 1:
            what = "no column" if name not in schema.names else "more than one column"
            raise MismatchError(f"{path} has {what} {name!r}, which {first} has; give files with the same columns, each named once.")
        kind = schema.field(name).type
        if not any(is_kind(kind) for is_kind in _NUMERIC):
            others = [n for n in names if n != name]
            raise DataError(
                f"Column {name!r} of {path} holds {'text' if pa.types.is_string(kind) else kind}, not numbers; "
                f"name the numeric columns, for example --columns {','.join(others[:3]) or 'a,b'} (columns=[...] in Python)."
            )


def _to_array(table: Any) -> Array:
    """A batch or table as a float array; single precision stays single."""
    kinds = {field.type for field in table.schema}
    dtype = np.float32 if kinds <= {pa.float32(), pa.float16()} else np.float64
    rows = np.empty((table.num_rows, table.num_columns), dtype)
    for i, column in enumerate(table.columns):
        if pa.types.is_boolean(column.type) or pa.types.is_decimal(column.type):
            column = pc.cast(column, pa.float64())
        rows[:, i] = column.to_numpy(zero_copy_only=False) if isinstance(column, pa.Array) else column.to_numpy()
    return rows


def _readable(error: Exception, path: Path) -> InputFileError:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return InputFileError(f"Cannot read {path}: {reason.rstrip('.')}; check the file, or write it again.")
