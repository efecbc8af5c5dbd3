"""The same values through any source: not close, equal."""

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ckm
from ckm.frequencies import draw_frequencies
from ckm.sketches import Sketch
from ckm.sources import base, open_source

NAMES = ("east", "north", "height")
LIKE = Sketch.empty(draw_frequencies(10, 3, seed=0), NAMES)
PLAIN = Sketch.empty(LIKE.frequencies)


def values(count: int = 3000) -> np.ndarray:
    X = np.random.default_rng(0).normal(size=(count, 3))
    X.flags.writeable = False
    return X


def as_csv(X: np.ndarray, path: Path, header: bool = True) -> Path:
    """Numbers as Python writes them, which is exact."""
    lines = [",".join(NAMES)] * header + [",".join(map(repr, row)) for row in X.tolist()]
    path.write_text("\n".join(lines) + "\n")
    return path


def as_table(X: np.ndarray, kind: Any = None) -> pa.Table:
    return pa.table({name: pa.array(X[:, i], kind) for i, name in enumerate(NAMES)})


def as_parquet(X: np.ndarray, path: Path, **options: Any) -> Path:
    pq.write_table(as_table(X), path, **options)
    return path


def as_npy(X: np.ndarray, path: Path) -> Path:
    np.save(path, X)
    return path


def parts(write: Callable[[np.ndarray, Path], Path], X: np.ndarray, folder: Path, suffix: str) -> list[Path]:
    """Three files, the middle one with a single row."""
    cuts = np.split(X, [1000, 1001])
    return [write(part, folder / f"part-{i}{suffix}") for i, part in enumerate(cuts)]


SOURCES: dict[str, Callable[[np.ndarray, Path], Any]] = {
    "array": lambda X, d: X,
    "list": lambda X, d: X.tolist(),
    "fortran": lambda X, d: np.asfortranarray(X),
    "big-endian": lambda X, d: X.astype(">f8"),
    "npy": lambda X, d: as_npy(X, d / "x.npy"),
    "npy, name": lambda X, d: str(as_npy(X, d / "x.npy")),
    "npy, fortran": lambda X, d: as_npy(np.asfortranarray(X), d / "x.npy"),
    "npy, many": lambda X, d: parts(as_npy, X, d, ".npy"),
    "npy, pattern": lambda X, d: parts(as_npy, X, d, ".npy") and str(d / "part-*.npy"),
    "csv": lambda X, d: as_csv(X, d / "x.csv"),
    "csv, many": lambda X, d: parts(as_csv, X, d, ".csv"),
    "csv, CRLF and BOM": lambda X, d: rewritten(as_csv(X, d / "x.csv")),
    "parquet": lambda X, d: as_parquet(X, d / "x.parquet"),
    "parquet, row groups": lambda X, d: as_parquet(X, d / "x.parquet", row_group_size=7),
    "parquet, many": lambda X, d: parts(as_parquet, X, d, ".parquet"),
    "parquet, pattern": lambda X, d: parts(as_parquet, X, d, ".parquet") and str(d / "*.parquet"),
    "parquet, compressed": lambda X, d: as_parquet(X, d / "x.parquet", compression="zstd", use_dictionary=False),
    "pandas": lambda X, d: pd.DataFrame(X, columns=NAMES),
    "pandas, odd index": lambda X, d: pd.DataFrame(X, columns=NAMES, index=np.arange(len(X))[::-1]),
    "pandas, arrow": lambda X, d: pd.DataFrame(X, columns=NAMES).convert_dtypes(dtype_backend="pyarrow"),
    "polars": lambda X, d: pl.DataFrame(X, schema=list(NAMES)),
    "polars, chunks": lambda X, d: pl.concat([pl.DataFrame(part, schema=list(NAMES)) for part in np.split(X, [10, 99])], rechunk=False),
    "pyarrow": lambda X, d: as_table(X),
    "pyarrow, chunks": lambda X, d: pa.concat_tables([as_table(part) for part in np.split(X, [10, 99])]),
    "record batch": lambda X, d: as_table(X).to_batches()[0],
}


def rewritten(path: Path) -> Path:
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    return path


@pytest.mark.parametrize("source", SOURCES)
def test_every_source_gives_the_same_sketch(source: str, tmp_path: Path) -> None:
    X = values()
    assert ckm.sketch(SOURCES[source](X, tmp_path), like=LIKE) == ckm.sketch(X, like=LIKE)


@pytest.mark.parametrize("source", SOURCES)
def test_every_source_draws_the_same_frequencies_from_small_data(source: str, tmp_path: Path) -> None:
    """Up to 5000 rows the pilot is all of them, whatever they come from."""
    X = values(200)
    s = ckm.sketch(SOURCES[source](X, tmp_path) if "many" not in source else X, sketch_size=10, random_state=3)
    assert s.frequencies == ckm.sketch(X, sketch_size=10, random_state=3).frequencies


@pytest.mark.parametrize("source", SOURCES)
def test_chunks_are_bounded_and_can_be_read_again(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X = values()
    opened = open_source(SOURCES[source](X, tmp_path))
    monkeypatch.setattr(base, "CHUNK_BYTES", 1024 * 8 * 3)
    for _ in range(2):
        chunks = list(opened.chunks())
        assert max(map(len, chunks)) <= 1024
        assert np.array_equal(np.concatenate(chunks), X)
    assert opened.n_features == 3
    assert opened.n_rows in (len(X), None)


@pytest.mark.parametrize("source", SOURCES)
def test_samples_are_rows_of_the_source(source: str, tmp_path: Path) -> None:
    X = values()
    opened = open_source(SOURCES[source](X, tmp_path))
    for size in (100, 10_000):
        rows, weights = opened.sample(size, np.random.default_rng(0))
        assert len(rows) == len(weights) == min(size, len(X))
        assert {tuple(row) for row in rows.tolist()} <= {tuple(row) for row in X.tolist()}
        assert len({tuple(row) for row in rows.tolist()}) == len(rows)


@pytest.mark.parametrize("source", ["array", "npy, many", "csv", "parquet, row groups", "pandas", "polars", "pyarrow"])
def test_weights_go_with_any_source(source: str, tmp_path: Path) -> None:
    X, w = values(), np.random.default_rng(1).integers(0, 3, size=3000)
    weighted = ckm.sketch(SOURCES[source](X, tmp_path), like=LIKE, sample_weight=w)
    assert weighted.z.tobytes() == ckm.sketch(np.repeat(X, w, axis=0), like=LIKE).z.tobytes()
    assert weighted.count == np.count_nonzero(w)


# Types


@pytest.mark.parametrize(
    "kind",
    [pa.float16(), pa.float32(), pa.float64(), pa.int8(), pa.int64(), pa.uint8(), pa.uint64(), pa.bool_(), pa.decimal128(12, 3)],
    ids=str,
)
@pytest.mark.parametrize("through", ["parquet", "pyarrow", "polars", "pandas"])
def test_numbers_of_every_type(kind: pa.DataType, through: str, tmp_path: Path) -> None:
    whole = np.random.default_rng(0).integers(0, 2 if kind == pa.bool_() else 100, size=(500, 3))
    columns = {name: pa.array(_typed(whole[:, i], kind), kind) for i, name in enumerate(NAMES)}
    table = pa.table(columns)
    data = {
        "parquet": lambda: pq.write_table(table, tmp_path / "x.parquet") or tmp_path / "x.parquet",
        "pyarrow": lambda: table,
        "polars": lambda: pl.from_arrow(table),
        "pandas": lambda: table.to_pandas(types_mapper=pd.ArrowDtype if pa.types.is_decimal(kind) else None),
    }[through]()
    scale = 0.125 if pa.types.is_decimal(kind) or pa.types.is_floating(kind) else 1.0
    assert ckm.sketch(data, like=LIKE) == ckm.sketch(whole * scale, like=LIKE)


def _typed(column: np.ndarray, kind: pa.DataType) -> Any:
    if pa.types.is_decimal(kind):
        return [Decimal(int(value)) / 8 for value in column]
    if kind == pa.bool_():
        return column.astype(bool)
    return (column * 0.125).astype(kind.to_pandas_dtype()) if pa.types.is_floating(kind) else column


def test_columns_of_different_types_in_one_table(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    columns = {"east": rng.integers(0, 9, 100), "north": rng.normal(size=100).astype(np.float32), "height": rng.random(100) < 0.5}
    X = np.stack([column.astype(np.float64) for column in columns.values()], axis=1)
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    for data in (pa.table(columns), pd.DataFrame(columns), pl.DataFrame(columns), tmp_path / "x.parquet"):
        assert ckm.sketch(data, like=LIKE) == ckm.sketch(X, like=LIKE)


def test_files_may_differ_in_precision(tmp_path: Path) -> None:
    X = values(100)
    whole = np.round(X * 10)
    for order in (1, -1):
        first, second = [(X, None), (whole, pa.int64())][::order]
        for i, (part, kind) in enumerate([first, second]):
            pq.write_table(as_table(part, kind), tmp_path / f"{i}.parquet")
        together = ckm.sketch([tmp_path / "0.parquet", tmp_path / "1.parquet"], like=LIKE)
        assert together == ckm.sketch(np.concatenate([X, whole]), like=LIKE)


def test_nullable_pandas_columns() -> None:
    frame = pd.DataFrame(values(50).round(), columns=NAMES).convert_dtypes()
    assert {str(kind) for kind in frame.dtypes} == {"Int64"}
    assert ckm.sketch(frame, like=LIKE) == ckm.sketch(values(50).round(), like=LIKE)


# Names


def test_csv_without_a_header(tmp_path: Path) -> None:
    path = as_csv(values(), tmp_path / "x.csv", header=False)
    s = ckm.sketch(path, like=PLAIN)
    assert s.count == 3000
    assert s.columns == ("x0", "x1", "x2")
    assert np.array_equal(s.tally.sums, ckm.sketch(values(), like=PLAIN).tally.sums)


def test_columns_are_found_by_name_in_any_order(tmp_path: Path) -> None:
    X, shuffled = values(), as_table(values()).select(["height", "east", "north"]).append_column("more", pa.array(["text"] * 3000))
    pq.write_table(shuffled, tmp_path / "x.parquet")
    for data in (shuffled, shuffled.to_pandas(), pl.from_arrow(shuffled), tmp_path / "x.parquet"):
        assert ckm.sketch(data, like=LIKE) == ckm.sketch(X, like=LIKE)
        chosen = ckm.sketch(data, columns=["east", "north", "height"], like=PLAIN)
        assert chosen == ckm.sketch(X, like=LIKE)
    assert ckm.sketch(tmp_path / "x.parquet", columns="north", sketch_size=4, random_state=0).columns == ("north",)


def test_files_of_one_set_may_order_their_columns_differently(tmp_path: Path) -> None:
    X = values(100)
    for suffix, write in ((".csv", _write_csv), (".parquet", pq.write_table)):
        write(as_table(X[:40]), tmp_path / f"a{suffix}")
        write(as_table(X[40:]).select(["north", "height", "east"]), tmp_path / f"b{suffix}")
        assert ckm.sketch([tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"], like=LIKE) == ckm.sketch(X, like=LIKE)


def _write_csv(table: pa.Table, path: Path) -> None:
    table.to_pandas().to_csv(path, index=False)


def test_pandas_columns_that_are_numbers_are_not_names() -> None:
    assert ckm.sketch(pd.DataFrame(values(50)), like=PLAIN).columns is None


# Large and awkward files


def test_a_whole_number_column_that_turns_fractional_far_down(tmp_path: Path) -> None:
    """CSV types are inferred from the first megabyte; what comes after must not be rounded, nor refused."""
    count = 300_000
    X = np.ones((count, 3))
    X[:, 1] = np.arange(count) % 10
    X[-1] = [0.5, 2.25, 1e-3]
    text = "east,north,height\n" + "".join(f"1,{i % 10},1\n" for i in range(count - 1)) + "0.5,2.25,0.001\n"
    assert len(text) > 2**20
    (tmp_path / "x.csv").write_text(text)
    assert ckm.sketch(tmp_path / "x.csv", like=LIKE) == ckm.sketch(X, like=LIKE)


def test_npy_files_are_mapped_not_read(tmp_path: Path) -> None:
    path = as_npy(values(), tmp_path / "x.npy")
    assert isinstance(next(open_source(path).chunks()), np.memmap)


def test_the_pilot_of_sorted_parquet_sees_both_ends(tmp_path: Path) -> None:
    X = np.sort(np.random.default_rng(0).normal(size=(60_000, 1)), axis=0)
    pq.write_table(pa.table({"x": X[:, 0]}), tmp_path / "x.parquet", row_group_size=1000)
    rows, _ = open_source(tmp_path / "x.parquet").sample(5000, np.random.default_rng(0))
    assert len(rows) == 5000
    assert rows.min() < X[1000]
    assert rows.max() > X[-1000]
    s = ckm.sketch(tmp_path / "x.parquet", sketch_size=10, random_state=0)
    in_memory = ckm.sketch(X, sketch_size=10, random_state=0)
    # A mean of sixteen groups out of sixty, the extremes among them, against one of 5000 rows: standard error 0.014.
    assert abs(s.frequencies.origin[0]) < 0.1
    # The extremes weigh more in those groups than in the whole; a factor of two costs nothing to frequencies at many scales.
    assert 0.5 < s.frequencies.scale / in_memory.frequencies.scale < 2
    by_paper = [ckm.sketch(data, sketch_size=10, distribution="adapted-radius", random_state=0) for data in (tmp_path / "x.parquet", X)]
    assert by_paper[0].frequencies.scale == pytest.approx(by_paper[1].frequencies.scale, rel=0.5)


def test_the_pilot_of_many_parquet_files_sees_both_ends(tmp_path: Path) -> None:
    X = np.sort(np.random.default_rng(0).normal(size=(20_000, 1)), axis=0)
    for i, part in enumerate(np.split(X, 20)):
        pq.write_table(pa.table({"x": part[:, 0]}), tmp_path / f"{i:02}.parquet")
    rows, _ = open_source(str(tmp_path / "*.parquet")).sample(5000, np.random.default_rng(0))
    assert rows.min() < X[1000]
    assert rows.max() > X[-1000]


def test_a_pattern_finds_files_in_folders(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    as_npy(values()[:1000], tmp_path / "a" / "1.npy")
    as_npy(values()[1000:], tmp_path / "a" / "b" / "2.npy")
    assert ckm.sketch(str(tmp_path / "**" / "*.npy"), like=LIKE) == ckm.sketch(values(), like=LIKE)


def test_a_name_with_brackets_is_a_name_first(tmp_path: Path) -> None:
    path = as_npy(values(), tmp_path / "x[1].npy")
    assert ckm.sketch(str(path), like=LIKE).count == 3000


def test_no_rows(tmp_path: Path) -> None:
    nothing = values()[:0]
    for data in (
        nothing,
        as_npy(nothing, tmp_path / "x.npy"),
        as_parquet(nothing, tmp_path / "x.parquet"),
        as_csv(nothing, tmp_path / "x.csv"),
    ):
        assert ckm.sketch(data, like=LIKE) == Sketch.empty(LIKE.frequencies, NAMES)
    assert ckm.sketch([as_npy(nothing, tmp_path / "a.npy"), as_npy(values(), tmp_path / "b.npy")], like=LIKE).count == 3000
