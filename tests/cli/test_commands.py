"""Every command does what its library function does."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import example_rows, read_csv, run, write_example_files
from sklearn.metrics import adjusted_rand_score

import ckm
from ckm._kmeans.assign import Centroids
from ckm._sources.arrays import ArraySource


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return example_rows()


@pytest.fixture
def folder(tmp_path: Path, X: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with files of the same rows."""
    write_example_files(tmp_path, X)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["data.npy", "data.csv", "data.parquet"])
def test_fit_is_sketch_and_decode(folder: Path, name: str) -> None:
    run("fit", name, "-k", 3, "-m", 100, "-o", "centroids.csv", "--seed", 5)
    s = ckm.sketch(name, n_clusters=3, sketch_size=100, pool=1000, random_state=5)
    expected = ckm.decode(s, 3, random_state=5)
    header, values = read_csv((folder / "centroids.csv").read_text())
    assert header == [
        "cluster",
        "weight",
        *(("[0]", "[1]") if name == "data.npy" else ("east", "north")),
    ]
    np.testing.assert_array_equal(values[:, 0], [0, 1, 2])
    np.testing.assert_array_equal(values[:, 1], expected.weights)
    # full precision: the very same bits
    np.testing.assert_array_equal(values[:, 2:], expected.centroids)


def test_centroids_go_to_standard_output_without_o(folder: Path) -> None:
    out, err = run("fit", "data.parquet", "-k", 3)
    run("fit", "data.parquet", "-k", 3, "-o", "centroids.csv")
    assert out == (folder / "centroids.csv").read_text()
    assert err == "Found 3 centroids of 3,000 rows from 30 frequencies\n"
    assert run("fit", "data.parquet", "-k", 3, "-q")[1] == ""


def test_patterns_and_lists_of_files_name_the_same_rows(folder: Path) -> None:
    whole = run("fit", "data.parquet", "-k", 3, "--scale", 1, "--pool", 0, "--json")[0]
    listed = run(
        "fit", "part-1.parquet", "part-2.parquet", "-k", 3, "--scale", 1, "--pool", 0, "--json"
    )[0]
    globbed = run("fit", "part-*.parquet", "-k", 3, "--scale", 1, "--pool", 0, "--json")[0]
    assert listed == globbed == whole


def test_json_is_one_object_and_a_file_of_centroids(folder: Path) -> None:
    out, _ = run("fit", "data.parquet", "-k", 3, "--sse", "--json", "-o", "centroids.json")
    record = json.loads(out)
    assert record == json.loads((folder / "centroids.json").read_text())
    assert record["columns"] == ["east", "north"]
    assert record["rows"] == 3000
    assert np.shape(record["centroids"]) == (3, 2)
    rows = np.load("data.npy")
    assert record["sse"] == pytest.approx(
        Centroids(np.array(record["centroids"])).sse(ArraySource(rows)), rel=1e-12
    )


def test_sse_is_measured_only_on_request(folder: Path) -> None:
    assert "sse" not in json.loads(run("fit", "data.parquet", "-k", 3, "--json")[0])
    assert re.search(r"SSE \d", run("fit", "data.parquet", "-k", 3, "--sse")[1])


def test_fit_uses_and_keeps_the_named_columns(folder: Path) -> None:
    run("fit", "shuffled.parquet", "-k", 3, "--columns", "east,north", "-o", "a.csv")
    run("fit", "data.parquet", "-k", 3, "-o", "b.csv")
    assert (folder / "a.csv").read_text() == (folder / "b.csv").read_text()
    run("fit", "data.parquet", "-k", 3, "--columns", "north", "-o", "c.csv")
    assert (folder / "c.csv").read_text().startswith("cluster,weight,north\n")


def test_saved_sketch_holds_no_rows(folder: Path) -> None:
    run("fit", "data.parquet", "-k", 3, "--save-sketch", "s.ckm", "-q")
    s = ckm.load("s.ckm")
    assert s.pool is None
    assert s == ckm.sketch("data.parquet", n_clusters=3, random_state=0)


def test_sketch_agrees_with_the_library(folder: Path) -> None:
    out, err = run(
        "sketch",
        "data.csv",
        "-k",
        3,
        "-o",
        "s.ckm",
        "--pool",
        50,
        "--seed",
        2,
        "--distribution",
        "gaussian",
        "--json",
    )
    s = ckm.load("s.ckm")
    assert s == ckm.sketch("data.csv", n_clusters=3, distribution="gaussian", random_state=2)
    assert s.pool is not None
    assert len(s.pool) == 50
    assert json.loads(out)["fingerprint"] == s.design.fingerprint
    assert err == "Sketched 3,000 rows of 2 columns into 30 frequencies: s.ckm\n"


def test_parts_merge_into_the_whole(folder: Path) -> None:
    run("sketch", "part-1.parquet", "-m", 60, "-o", "1.ckm")
    run("sketch", "part-2.parquet", "--like", "1.ckm", "-o", "2.ckm", "--jobs", 1)
    run("merge", "1.ckm", "2.ckm", "-o", "all.ckm")
    run("sketch", "data.parquet", "--like", "1.ckm", "-o", "whole.ckm")
    merged, whole = ckm.load("all.ckm"), ckm.load("whole.ckm")
    assert merged == whole
    assert merged.tally.sums.tobytes() == whole.tally.sums.tobytes()
    run("decode", "all.ckm", "-k", 3, "-o", "a.csv")
    run("decode", "whole.ckm", "-k", 3, "-o", "b.csv")
    assert (folder / "a.csv").read_text() == (folder / "b.csv").read_text()


def test_merge_takes_patterns(folder: Path) -> None:
    run("sketch", "part-1.parquet", "-m", 20, "-o", "day-1.ckm")
    run("sketch", "part-2.parquet", "--like", "day-1.ckm", "-o", "day-2.ckm")
    out, err = run("merge", "day-*.ckm", "-o", "all.ckm", "--json")
    assert json.loads(out)["rows"] == 3000
    assert err == "Merged 2 sketches of 3,000 rows in all: all.ckm\n"


def test_decode_agrees_with_the_library(folder: Path) -> None:
    run("sketch", "data.npy", "-m", 60, "--pool", 100, "-o", "s.ckm")
    out, _ = run(
        "decode",
        "s.ckm",
        "-k",
        3,
        "--decoder",
        "clompr",
        "--init",
        "k++",
        "--n-init",
        2,
        "--seed",
        1,
        "--json",
    )
    expected = ckm.decode(
        ckm.load("s.ckm"), 3, decoder="clompr", init="k++", n_init=2, random_state=1
    )
    record = json.loads(out)
    np.testing.assert_array_equal(record["centroids"], expected.centroids)
    assert record["cost"] == expected.cost
    assert record["columns"] is None


@pytest.mark.parametrize("centroids", ["c.csv", pytest.param("c.json", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "data",
    [
        pytest.param("data.npy", marks=pytest.mark.slow),
        "data.csv",
        pytest.param("data.parquet", marks=pytest.mark.slow),
        "shuffled.parquet",
    ],
)
def test_predict_gives_nearest_centroids(
    folder: Path, X: np.ndarray, centroids: str, data: str
) -> None:
    run("fit", "data.parquet", "-k", 3, "-o", centroids, "-q")
    found = json.loads(run("fit", "data.parquet", "-k", 3, "--json", "-q")[0])["centroids"]
    out, err = run("predict", data, "--centroids", centroids, "-o", "labels.npy", "--json")
    expected, sse = Centroids(np.array(found)).assign(ArraySource(X))
    labels, record = np.load("labels.npy"), json.loads(out)
    np.testing.assert_array_equal(labels, expected)
    assert record["rows"] == 3000
    assert record["counts"] == np.bincount(expected, minlength=3).tolist()
    assert record["sse"] == pytest.approx(sse, rel=1e-12)
    assert err.startswith("Labelled 3,000 rows, SSE ")


def test_labels_are_the_same_in_every_format(folder: Path) -> None:
    run("fit", "data.npy", "-k", 3, "-o", "c.csv")
    for name in ("l.npy", "l.csv", "l.parquet"):
        run("predict", "data.npy", "-c", "c.csv", "-o", name)
    labels = np.load("l.npy")
    assert labels.dtype == np.int32
    np.testing.assert_array_equal(np.loadtxt("l.csv", skiprows=1), labels)
    assert (folder / "l.csv").read_text().startswith("cluster\n")
    np.testing.assert_array_equal(pq.read_table("l.parquet")["cluster"].to_numpy(), labels)


def test_predict_streams_more_than_one_row_group(folder: Path) -> None:
    rows = np.zeros((2**20 + 5, 1), np.float32)
    rows[-5:] = 9
    np.save("long.npy", rows)
    (folder / "c.csv").write_text("cluster,weight,x0\n0,0.5,0.0\n1,0.5,10.0\n")
    for name in ("l.npy", "l.parquet"):
        out, _ = run("predict", "long.npy", "-c", "c.csv", "-o", name)
        assert out == "cluster,rows,sse\n0,1048576,0.0\n1,5,5.0\n"
    labels = pq.read_table("l.parquet")["cluster"].to_numpy()
    np.testing.assert_array_equal(labels, np.load("l.npy"))
    assert labels.tolist()[-7:] == [0, 0, 1, 1, 1, 1, 1]


def test_centroids_of_unnamed_columns_fit_any_table_of_the_same_width(folder: Path) -> None:
    run("fit", "data.npy", "-k", 3, "-o", "c.csv")
    assert json.loads(run("predict", "data.parquet", "-c", "c.csv", "--json")[0]) == json.loads(
        run("predict", "data.npy", "-c", "c.csv", "--json")[0]
    )


def test_inspect_shows_what_the_sketch_holds(folder: Path, X: np.ndarray) -> None:
    run("sketch", "data.parquet", "-m", 40, "--cells", 9, "--pool", 10, "-o", "s.ckm")
    s = ckm.load("s.ckm")
    count = len(s.cells.anchors)
    assert 5 <= count <= 9
    out, _ = run("inspect", "s.ckm")
    for fact in (
        "3,000",
        "40",
        f"{s.nbytes:,} (with cells)",
        f"{count} (one of a single row is that row)",
        "multiscale",
        s.design.fingerprint,
        "10 sampled rows",
        "east",
        f"{X[:, 1].mean():.6g}",
    ):
        assert fact in out
    record = json.loads(run("inspect", "s.ckm", "--json")[0])
    assert record["bytes"] == 16 * 40 + count * (4 * 2 + 8 * (2 + 2))
    assert record["cells"] == count
    assert record["scale"] == s.frequencies.scale
    assert record["exact"] is True
    np.testing.assert_array_equal(record["lower"], X.min(axis=0))
    np.testing.assert_allclose(record["mean"], X.mean(axis=0))
    np.testing.assert_allclose(record["std"], X.std(axis=0))


def test_inspect_an_empty_sketch(folder: Path) -> None:
    np.save("none.npy", np.empty((0, 2)))
    run("sketch", "none.npy", "-m", 10, "--scale", 1, "-o", "s.ckm")
    assert "rows" in run("inspect", "s.ckm")[0]
    assert json.loads(run("inspect", "s.ckm", "--json")[0])["mean"] is None


def test_like_has_a_size_that_clusters_only_check(folder: Path) -> None:
    run("sketch", "part-1.parquet", "-k", 3, "--cells", 0, "-o", "a.ckm")
    _, err = run("sketch", "part-2.parquet", "--like", "a.ckm", "-k", 5, "-o", "b.ckm")
    assert "into the 30 frequencies of a.ckm: b.ckm" in err
    _, err = run("sketch", "part-2.parquet", "--like", "a.ckm", "-k", 50, "-o", "b.ckm", expect=1)
    assert "m = 30 frequencies is too small for 50 clusters" in err
    assert "with --like, check" in " ".join(run("sketch", "--help")[0].split())


@pytest.mark.parametrize("output", ["labels.npy", "labels.csv", "labels.parquet"])
def test_rows_with_missing_values_are_labelled_minus_one(
    folder: Path, X: np.ndarray, output: str
) -> None:
    run("fit", "data.csv", "-k", 3, "-o", "c.csv")
    run("predict", "data.csv", "-c", "c.csv", "-o", "all.npy")
    gaps = pd.read_csv("data.csv")
    gaps.iloc[[0, 1500], [1, 0]] = np.nan
    gaps.to_csv("gaps.csv", index=False)
    out, err = run("predict", "gaps.csv", "-c", "c.csv", "--nan", "drop", "-o", output, "--json")
    assert (
        "Warning: 2 rows have missing values: their label is -1, and they count in no cluster."
        in err
    )
    read = {
        ".npy": np.load,
        ".csv": lambda name: pd.read_csv(name).cluster,
        ".parquet": lambda name: pd.read_parquet(name).cluster,
    }
    labels, expected = np.asarray(read[Path(output).suffix](output)), np.load("all.npy")
    expected[[0, 1500]] = -1
    assert np.array_equal(labels, expected)
    record = json.loads(out)
    assert (record["rows"], record["missing"], sum(record["counts"])) == (2998, 2, 2998)
    assert "--nan" in run("predict", "gaps.csv", "-c", "c.csv", "--nan", "keep", expect=2)[1]
    assert "or use --nan drop." in run("predict", "gaps.csv", "-c", "c.csv", expect=1)[1]


# Standardised columns


def test_standardised_columns_do_not_depend_on_units(folder: Path) -> None:
    frame = pd.read_parquet("data.parquet")
    name = frame.columns[0]
    frame.assign(**{name: 1000 * frame[name]}).to_parquet("grams.parquet")
    records = {}
    for file in ("data", "grams"):
        run("fit", f"{file}.parquet", "-k", 3, "--standardize", "--sse", "-o", f"{file}.json")
        records[file] = json.loads(Path(f"{file}.json").read_text())
        out, _ = run(
            "predict", f"{file}.parquet", "-c", f"{file}.json", "-o", f"{file}.npy", "--json"
        )
        assert json.loads(out)["sse"] == pytest.approx(records[file]["sse"])
    a, b = records["data"], records["grams"]
    assert b["sse"] == pytest.approx(a["sse"], rel=1e-3)
    assert adjusted_rand_score(np.load("data.npy"), np.load("grams.npy")) == 1
    assert np.array(b["units"])[0] == pytest.approx(1000 * a["units"][0])
    assert np.sort(np.array(b["centroids"])[:, 0]) == pytest.approx(
        1000 * np.sort(np.array(a["centroids"])[:, 0]), rel=1e-2
    )


@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
@pytest.mark.parametrize("options", [["--standardize"], ["--metric", "cosine"], []])
def test_files_of_centroids_keep_what_distances_depend_on(
    folder: Path, ending: str, options: list[str]
) -> None:
    run("fit", "data.parquet", "-k", 3, *options, "-o", "expected.json")
    run("fit", "data.parquet", "-k", 3, *options, "-o", f"c.{ending}")
    found = [
        json.loads(run("predict", "shuffled.parquet", "-c", file, "--json")[0])
        for file in ("expected.json", f"c.{ending}")
    ]
    assert found[0] == found[1]


def test_columns_that_read_like_units_or_a_metric_are_refused_as_csv(folder: Path) -> None:
    table = pa.table({"a": [1.0, 2.0, 3.0], "unit of a": [1.0, 5.0, 2.0]})
    pq.write_table(table, "units.parquet")
    _, err = run("fit", "units.parquet", "-k", 1, "-o", "c.csv", expect=1)
    assert "Columns named a, unit of a cannot be written as CSV" in err
    run("fit", "units.parquet", "-k", 1, "-o", "c.parquet")
    run("predict", "units.parquet", "-c", "c.parquet")


# Unit rows


def test_cosine_is_that_of_the_library(folder: Path, X: np.ndarray) -> None:
    np.save("longer.npy", X * np.linspace(1, 9, len(X))[:, None])
    asked = ("-k", 3, "--metric", "cosine")
    out, _ = run("fit", "data.npy", *asked, "--sse", "-o", "c.json", "--json")
    record = json.loads(out)
    s = ckm.sketch("data.npy", n_clusters=3, metric="cosine", pool=1000, random_state=0)
    solution = ckm.decode(s, 3, random_state=0)
    assert record["metric"] == "cosine"
    assert record["sse"] == pytest.approx(-solution.score(X))
    np.testing.assert_array_equal(record["centroids"], solution.centroids)
    for name in ("data.npy", "longer.npy"):
        out, _ = run("predict", name, "-c", "c.json", "-o", "labels.npy", "--json")
        assert json.loads(out)["sse"] == pytest.approx(record["sse"])
        np.testing.assert_array_equal(np.load("labels.npy"), solution.predict(X))
    polished, _ = run("fit", "data.npy", *asked, "--polish", 2, "--json")
    assert json.loads(polished)["sse"] <= record["sse"]
    run("sketch", "data.npy", *asked, "-o", "s.ckm")
    assert ckm.load("s.ckm") == s.without_pool()
    run("decode", "s.ckm", "-k", 3, "-o", "d.json")
    assert json.loads(Path("d.json").read_text())["metric"] == "cosine"


def test_inspect_shows_the_metric(folder: Path) -> None:
    for metric in ("cosine", "euclidean"):
        run("sketch", "data.npy", "-k", 3, "--metric", metric, "-o", "s.ckm")
        assert re.search(rf"metric +{metric}", run("inspect", "s.ckm")[0])
        assert json.loads(run("inspect", "s.ckm", "--json")[0])["metric"] == metric


def test_a_sketch_like_another_has_its_metric(folder: Path) -> None:
    run("sketch", "part-1.parquet", "-k", 3, "--metric", "cosine", "-o", "a.ckm")
    run("sketch", "part-2.parquet", "--like", "a.ckm", "-o", "b.ckm")
    run("merge", "a.ckm", "b.ckm", "-o", "c.ckm")
    assert ckm.load("c.ckm") == ckm.sketch("data.parquet", like="a.ckm")
    run("sketch", "part-1.parquet", "-k", 3, "-o", "e.ckm")
    assert (
        "metrics 'cosine' and 'euclidean'"
        in run("merge", "a.ckm", "e.ckm", "-o", "f.ckm", expect=1)[1]
    )
    _, err = run(
        "sketch", "data.parquet", "--like", "e.ckm", "--metric", "cosine", "-o", "g.ckm", expect=1
    )
    assert "--metric cosine contradicts --like, which has 'euclidean'" in err


def test_bad_metrics_are_wrong_usage(folder: Path) -> None:
    for command in ("fit", "sketch"):
        start = (command, "data.npy", "-k", 3, "-o", "s.ckm" if command == "sketch" else "c.json")
        _, err = run(*start, "--metric", "l1", expect=2)
        assert "must be 'euclidean' or 'cosine'; got 'l1'" in " ".join(err.split())
        _, err = run(*start, "--metric", "cosine", "--standardize", expect=2)
        assert "leave out --standardize" in " ".join(err.split())


def test_files_of_centroids_without_a_metric_are_euclidean(folder: Path, X: np.ndarray) -> None:
    run("fit", "data.npy", "-k", 3, "-o", "c.json")
    record = json.loads(Path("c.json").read_text())
    expected = json.loads(run("predict", "data.npy", "-c", "c.json", "--json")[0])
    del record["metric"]
    Path("c.json").write_text(json.dumps(record))
    assert json.loads(run("predict", "data.npy", "-c", "c.json", "--json")[0]) == expected
    Path("c.json").write_text(json.dumps(record | {"metric": "l1"}))
    assert "metric must be" in run("predict", "data.npy", "-c", "c.json", expect=1)[1]


def test_a_device_can_be_named(folder: Path) -> None:
    sketches = []
    for device in ("auto", "cpu"):
        run("sketch", "data.npy", "-k", "3", "-o", f"{device}.ckm", "--device", device)
        sketches.append(ckm.load(f"{device}.ckm"))
    assert sketches[0] == sketches[1]
    assert sketches[0].exact
    printed = [
        run(*command, "-k", "3", "--json", "--device", "cpu")[0]
        for command in (("decode", "cpu.ckm"), ("fit", "data.npy"))
    ]
    assert all(len(json.loads(text)["centroids"]) == 3 for text in printed)


def test_predict_fills_in_what_the_sketch_filled_in(folder: Path, X: np.ndarray) -> None:
    gaps = pd.read_csv("data.csv")
    first, second = gaps.columns
    gaps.loc[::9, first] = np.nan
    gaps.to_csv("gaps.csv", index=False)
    options = ("-k", 3, "--nan", "impute", "--log", second)
    for name in ("c.json", "c.parquet"):
        if name.endswith("parquet"):
            options = options[:-2]
        run("fit", "gaps.csv", *options, "-o", name)
        _, err = run("predict", "gaps.csv", "-c", name, "--nan", "impute", "-o", "labels.npy")
        assert "Warning: filled in 334 missing values of 334 rows by the values of" in err
        model = ckm.CompressiveKMeans(
            3, nan="impute", log=[second] if "--log" in options else None, random_state=0
        )
        with pytest.warns(ckm.errors.MissingRowsWarning):
            labels = model.fit_predict(gaps)
        np.testing.assert_array_equal(np.load("labels.npy"), labels)
    run("fit", "data.csv", "-k", 3, "-o", "c.csv")
    _, err = run("predict", "gaps.csv", "-c", "c.csv", "--nan", "impute", expect=1)
    assert "c.csv does not say what missing values are replaced by" in err
    assert "-o centroids.json, or use --nan drop" in err
