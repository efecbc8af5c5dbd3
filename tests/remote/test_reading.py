"""An address means the same rows as the file that was copied there, bit for bit."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from command import fail, run
from files_of_every_kind import KINDS, rows, table, write_csv, write_parquet

import ckm
from ckm._core.storage import serialise
from ckm._sources import ColumnRequest, open_source
from ckm.errors import InputFileError, MissingFileError, ParameterError

pytestmark = pytest.mark.xdist_group("remote")

OPTIONS: dict[str, Any] = {"n_clusters": 3, "random_state": 0}


def sketched(data: Any, **options: Any) -> bytes:
    return serialise(ckm.sketch(data, **(OPTIONS | options)))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_object(kind: str, s3: Any, tmp_path: Path) -> None:
    name = KINDS[kind](rows(), tmp_path)
    file, mark, inner = name.partition("::")
    address = s3.upload(tmp_path / file) + mark + inner
    assert sketched(address) == sketched(str(tmp_path / name))


QUICK = ("parquet", "csv", "npy", "hdf5")


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=() if kind in QUICK else pytest.mark.slow)
        for kind in KINDS
        if kind != "zarr"
    ],
)
def test_every_kind_of_file_on_a_web_server(kind: str, web: Any, tmp_path: Path) -> None:
    name = KINDS[kind](rows(), tmp_path)
    file, mark, inner = name.partition("::")
    address = web.upload(tmp_path / file) + mark + inner
    assert sketched(address) == sketched(str(tmp_path / name))


def test_other_stores_are_reached_by_fsspec(tmp_path: Path) -> None:
    import fsspec

    name = write_parquet(rows(), tmp_path)
    memory = fsspec.filesystem("memory")
    memory.pipe_file("/folder/rows.parquet", (tmp_path / name).read_bytes())
    expected = sketched(str(tmp_path / name))
    assert sketched("memory://folder/rows.parquet") == expected
    assert sketched("memory://folder/*.parquet") == expected
    assert sketched("memory://folder/") == expected
    ckm.sketch(rows(), **OPTIONS).save("memory://folder/s.ckm")
    assert ckm.load("memory://folder/s.ckm") == ckm.sketch(rows(), **OPTIONS)
    assert not any(".part" in key for key in memory.find("/folder"))


def test_file_addresses_are_files(tmp_path: Path) -> None:
    name = write_csv(rows(), tmp_path)
    assert sketched((tmp_path / name).as_uri()) == sketched(str(tmp_path / name))


def in_parts(s3: Any, folder: Path) -> Path:
    """Parts in folders with keys, files that are not data, and hidden ones."""
    X = rows()
    for i, low in enumerate(range(0, 3000, 1000)):
        inside = folder / f"year={2020 + i}"
        inside.mkdir(parents=True)
        pq.write_table(table(X[low : low + 1000]), inside / f"part-{i}.parquet")
    (folder / "README.txt").write_text("not rows")
    (folder / "_temporary").mkdir()
    (folder / "_temporary" / "half.parquet").write_bytes(b"half")
    (folder / ".hidden.parquet").write_bytes(b"hidden")
    s3.upload(folder, "table")
    return folder


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "/",
        "/*/part-*.parquet",
        "/year=202?/*",
        "/y*/**/*.parquet",
        "/year=*",
        "/year=202[01]/part-?.parquet",
    ],
)
def test_patterns_and_folders(pattern: str, s3: Any, tmp_path: Path) -> None:
    folder = in_parts(s3, tmp_path / "table")
    request = ColumnRequest(["east", "north"])
    expected = open_source(f"{folder}{pattern}", request)
    found = open_source(f"{s3.url}/table{pattern}", request)
    assert [part.rpartition("table/")[2] for part in found.parts] == [
        part.rpartition("table/")[2] for part in expected.parts
    ]
    columns = request.columns
    local = sketched(f"{folder}{pattern}", columns=columns)
    assert sketched(f"{s3.url}/table{pattern}", columns=columns) == local


def test_keys_of_folders_are_columns(s3: Any, tmp_path: Path) -> None:
    folder = in_parts(s3, tmp_path / "table")
    columns = ["east", "year"]
    expected = sketched(folder, columns=columns)
    assert sketched(f"{s3.url}/table", columns=columns) == expected


def test_patterns_on_a_web_server(web: Any, tmp_path: Path) -> None:
    X = rows()
    for i in range(3):
        pq.write_table(table(X[i * 1000 : i * 1000 + 1000]), tmp_path / f"part-{i}.parquet")
        web.upload(tmp_path / f"part-{i}.parquet", f"data/part-{i}.parquet")
    expected = sketched(str(tmp_path / "*.parquet"))
    assert sketched(f"{web.url}/data/*.parquet") == expected
    assert sketched(f"{web.url}/data/") == expected


def test_an_exact_name_with_the_letters_of_patterns(s3: Any, tmp_path: Path) -> None:
    name = write_parquet(rows(), tmp_path)
    s3.upload(tmp_path / name, "odd [1] 100%.parquet")
    assert sketched(f"{s3.url}/odd [1] 100%.parquet") == sketched(str(tmp_path / name))


def test_an_endpoint_in_the_address(
    s3: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, s3_ports: Any
) -> None:
    address = s3.upload(tmp_path / write_parquet(rows(), tmp_path))
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    host = s3_ports[2].removeprefix("http://")
    found = sketched(f"{address}?endpoint_override={host}&scheme=http")
    assert found == sketched(str(tmp_path / "rows.parquet"))


@pytest.mark.slow
def test_estimator(s3: Any, tmp_path: Path) -> None:
    local = tmp_path / write_parquet(rows(), tmp_path)
    address = s3.upload(local)
    model = ckm.CompressiveKMeans(n_clusters=3, random_state=0)
    expected = model.fit(local).predict(local)
    assert np.array_equal(model.fit(address).predict(address), expected)


def test_a_list_may_mix_files_and_objects(s3: Any, tmp_path: Path) -> None:
    local = tmp_path / write_parquet(rows(), tmp_path)
    assert sketched([str(local), s3.upload(local)]) == sketched([local, local])


@pytest.mark.parametrize("name", ["none.parquet", "none/", "none-*.parquet", "none.zarr"])
def test_missing_objects(name: str, s3: Any, web: Any) -> None:
    s3.put("other.csv", b"a\n1\n")
    with pytest.raises(MissingFileError, match=r"check the address.*credentials"):
        ckm.sketch(f"{s3.url}/{name}", n_clusters=2)
    if not name.endswith(".zarr"):
        with pytest.raises(MissingFileError, match=r"check the address"):
            ckm.sketch(f"{web.url}/{name}", n_clusters=2)


def test_missing_bucket(s3: Any) -> None:
    with pytest.raises(MissingFileError, match=r"s3://no-such-bucket/a.csv"):
        ckm.sketch("s3://no-such-bucket/a.csv", n_clusters=2)


def test_what_is_not_an_object_of_rows(s3: Any, web: Any) -> None:
    for put in (s3.put, web.put):
        with pytest.raises(InputFileError, match=r"empty.csv is empty \(0 bytes\)"):
            ckm.sketch(put("empty.csv", b""), n_clusters=2)
        with pytest.raises(InputFileError, match=r"damaged.parquet.*magic bytes"):
            ckm.sketch(put("damaged.parquet", b"PAR1 and more"), n_clusters=2)
        with pytest.raises(InputFileError, match=r"cut.npy.*header announces"):
            ckm.sketch(put("cut.npy", _npy(np.ones((5, 2)))[:-1]), n_clusters=2)
        with pytest.raises(InputFileError, match=r"Python objects"):
            ckm.sketch(put("pickle.npy", _npy(np.array([[None]]))), n_clusters=2)
        with pytest.raises(InputFileError, match=r"not an HDF5 file"):
            ckm.sketch(put("damaged.h5", b"nothing"), n_clusters=2)
    with pytest.raises(InputFileError, match=r"web servers list no folders"):
        ckm.sketch(f"{web.url}/rows.zarr", n_clusters=2)


def _npy(array: np.ndarray) -> bytes:
    import io

    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=True)
    return stream.getvalue()


def test_a_server_without_ranges(web: Any) -> None:
    web.served.has_ranges = False
    with pytest.raises(InputFileError, match=r"whole files only.*pipe it into -"):
        ckm.sketch(web.put("rows.csv", b"a,b\n1,2\n"), n_clusters=2)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("s3:///rows.csv", "names no bucket"),
        ("https:///rows.csv", "names no server"),
        ("gopher://host/rows.csv", "Nothing here reads gopher://"),
        ("file://elsewhere/rows.csv", "three slashes"),
    ],
)
def test_what_is_not_an_address(address: str, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        ckm.sketch(address, n_clusters=2)


def test_a_path_that_was_an_address() -> None:
    with pytest.raises(MissingFileError, match="give an address as text"):
        ckm.sketch(Path("s3://bucket/rows.csv"), n_clusters=2)


@pytest.mark.slow
@pytest.mark.sampled
def test_commands(s3: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    address = s3.upload(tmp_path / write_parquet(rows(), tmp_path))
    run("sketch", "rows.parquet", "-k", 3, "-o", "a.ckm", "-q")
    run("sketch", address, "-k", 3, "-o", f"{s3.url}/a.ckm", "-q")
    assert s3.get("a.ckm") == Path("a.ckm").read_bytes()
    run("sketch", address, "--like", f"{s3.url}/a.ckm", "-o", f"{s3.url}/b.ckm", "-q")
    run("merge", f"{s3.url}/*.ckm", "-o", f"{s3.url}/merged/all.ckm", "-q")
    assert "6,000" in run("inspect", f"{s3.url}/merged/all.ckm")[0].replace("6000", "6,000")
    run("decode", f"{s3.url}/a.ckm", "-k", 3, "-o", f"{s3.url}/c.csv", "-q")
    run("decode", "a.ckm", "-k", 3, "-o", "c.csv", "-q")
    assert s3.get("c.csv") == Path("c.csv").read_bytes()
    run("fit", address, "-k", 3, "-o", f"{s3.url}/c.json", "--save-sketch", f"{s3.url}/f.ckm", "-q")
    for ending in ("csv", "npy", "parquet"):
        run("predict", "rows.parquet", "-c", "c.csv", "-o", f"labels.{ending}", "-q")
        labels = f"{s3.url}/labels.{ending}"
        run("predict", address, "-c", f"{s3.url}/c.csv", "-o", labels, "-q")
        assert s3.get(f"labels.{ending}") == Path(f"labels.{ending}").read_bytes()


def test_two_names_of_one_object(s3: Any, tmp_path: Path) -> None:
    address = s3.upload(tmp_path / write_csv(rows(), tmp_path))
    other = address.replace("s3://", "S3://") + "?region=us-east-1"
    assert "given twice" in fail("sketch", address, other, "-k", 3, "-o", tmp_path / "a.ckm")
    fail("fit", address, "-k", 3, "-o", other.partition("?")[0])
