"""Data files: .npy, .csv and .parquet, one or many, by name or glob pattern, read in bounded memory."""

import glob
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.dataset as pa_dataset
import pyarrow.parquet as pq

from ckm.errors import DataError, InputFileError, MissingFileError, ParameterError
from ckm.readonly import Array
from ckm.sources.arrays import ArraySource
from ckm.sources.base import Source, require_table, rows_per_chunk
from ckm.sources.frames import require_columns

_SAMPLED_GROUPS = 16
_SUFFIXES = (".npy", ".csv", ".parquet")


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
        return np.load(path, mmap_mode="r", allow_pickle=False)  # type: ignore[no-any-return]
    except (ValueError, OSError, EOFError) as error:
        if "pickle" in str(error).lower() or "object" in str(error).lower():
            reason = "it holds Python objects (a pickle) where numbers are expected"
        else:
            reason = f"it is damaged or not a .npy file ({str(error).splitlines()[0]})"
        raise InputFileError(f"Cannot read {path}: {reason}; write it again with np.save(name, array).") from error


class TableSource(Source):
    """CSV or Parquet files with the same numeric columns, scanned with little read-ahead so that memory stays bounded."""

    def __init__(self, paths: Sequence[Path], columns: Sequence[str] | None = None) -> None:
        self._paths = paths
        self._parquet = paths[0].suffix.lower() == ".parquet"
        self._dataset = self._open()
        present = self._dataset.schema.names
        self._names = list(present) if columns is None else require_columns(columns, present)
        _require_numeric(self._dataset.schema, self._names, paths)
        require_table((0, len(self._names)), str(paths[0]))
        self.columns = tuple(self._names)
        self.n_features = len(self._names)
        self.n_rows = self._dataset.count_rows() if self._parquet else None

    def chunks(self) -> Iterator[Array]:
        batches = self._parquet_batches() if self._parquet else self._csv_batches()
        try:
            for batch in batches:
                if len(batch):
                    yield _to_array(batch)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OSError) as error:
            raise _readable(error, self._paths) from error

    def _parquet_batches(self) -> Iterator[Any]:
        """One batch at a time, file by file: the data set scanner would read ahead without bound of a slow consumer."""
        for path in self._paths:
            with pq.ParquetFile(path, pre_buffer=False) as file:
                for batch in file.iter_batches(rows_per_chunk(self.n_features), columns=self._names, use_threads=False):
                    yield batch.select(self._names)

    def _csv_batches(self) -> Iterator[Any]:
        options = {"batch_readahead": 1, "fragment_readahead": 1, "batch_size": rows_per_chunk(self.n_features)}
        yield from self._dataset.scanner(columns=self._names, **options).to_batches()

    def sample(self, size: int, rng: np.random.Generator, weights: Array | None = None) -> tuple[Array, Array]:
        """From Parquet, rows of a few row groups spread over the files; from CSV, by reading it once."""
        if not self._parquet or weights is not None or (self.n_rows or 0) <= size:
            return super().sample(size, rng, weights)
        groups = [part for fragment in self._dataset.get_fragments() for part in fragment.split_by_row_group()]
        picked = np.unique(np.linspace(0, len(groups) - 1, _SAMPLED_GROUPS).round().astype(int))
        tables = [_to_array(groups[i].to_table(columns=self._names).combine_chunks()) for i in picked]
        rows = np.concatenate(tables)
        kept = np.sort(rng.choice(len(rows), min(size, len(rows)), replace=False))
        return rows[kept].astype(np.float64), np.ones(len(kept))

    def _open(self) -> Any:
        paths = list(map(str, self._paths))
        try:
            if self._parquet:
                return pa_dataset.dataset(paths, format="parquet")
            return _open_csv(self._paths)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OSError, UnicodeDecodeError) as error:
            raise _readable(error, self._paths) from error


def _open_csv(paths: Sequence[Path]) -> Any:
    """A CSV data set whose whole-number columns may turn out to hold fractions further down."""
    with paths[0].open(encoding="utf-8", errors="replace") as file:
        header = [name.strip().strip('"') for name in file.readline().rstrip("\r\n").split(",")]
    read = pa_csv.ReadOptions(column_names=[f"x{i}" for i in range(len(header))]) if all(map(_is_number, header)) else None
    inferred = pa_dataset.dataset(str(paths[0]), format=pa_dataset.CsvFileFormat(read_options=read)).schema
    types = {f.name: pa.float64() for f in inferred if pa.types.is_integer(f.type) or pa.types.is_null(f.type)}
    convert = pa_csv.ConvertOptions(column_types=types)
    return pa_dataset.dataset(list(map(str, paths)), format=pa_dataset.CsvFileFormat(read_options=read, convert_options=convert))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _require_numeric(schema: Any, names: Sequence[str], paths: Sequence[Path]) -> None:
    for name in names:
        kind = schema.field(name).type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal(kind)):
            others = [n for n in names if n != name]
            raise DataError(
                f"Column {name!r} of {paths[0]} holds {'text' if pa.types.is_string(kind) else kind}, not numbers; "
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


def _readable(error: Exception, paths: Sequence[Path]) -> InputFileError:
    name = str(paths[0]) if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return InputFileError(f"Cannot read {name}: {reason.rstrip('.')}; check the file, or write it again.")


def file_columns(patterns: Sequence[str | Path]) -> tuple[str, ...] | None:
    """The names of all columns in tables, whatever they hold; None for arrays."""
    paths = resolve(patterns)
    if paths[0].suffix.lower() == ".npy":
        return None
    try:
        return tuple((pq.read_schema(paths[0]) if paths[0].suffix.lower() == ".parquet" else _open_csv(paths[:1]).schema).names)
    except (pa.ArrowInvalid, OSError) as error:
        raise _readable(error, paths) from error
