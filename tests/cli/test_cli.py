"""Every sub-command does what its library function does, and behaves in a shell."""

import contextlib
import csv
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from sklearn.metrics import adjusted_rand_score
from typer.main import get_command

import ckm
from ckm._cli import errors
from ckm._cli.app import app
from ckm._cli.errors import in_options
from ckm._core.laws import DISTRIBUTIONS
from ckm._decoding.api import DECODERS
from ckm._decoding.starts import INITS
from ckm._kmeans.assign import Centroids
from ckm._messages import Argument, Aside, Message
from ckm._sources.arrays import ArraySource

COMMANDS = ("fit", "sketch", "merge", "decode", "predict", "inspect", "demo")


def run(*args: object, expect: int = 0) -> tuple[str, str]:
    """Run a command in this process; its standard output and standard error."""
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as exit,
    ):
        app(args=[str(arg) for arg in args], prog_name="ckm")
    assert (exit.value.code or 0) == expect, err.getvalue()
    return out.getvalue(), err.getvalue()


def shell(*args: object, **options: object) -> subprocess.CompletedProcess[str]:
    """Run a command as a process of its own."""
    command = [sys.executable, "-c", "from ckm._cli.app import main; main()", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)  # type: ignore[call-overload,no-any-return]


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return ckm.datasets.gaussian_mixture(3000, 3, 2, separation=30, random_state=0).rows


@pytest.fixture
def folder(tmp_path: Path, X: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with the same rows as .npy, .csv and .parquet, whole and in two parts."""
    table = pa.table({"east": X[:, 0], "north": X[:, 1]})
    np.save(tmp_path / "data.npy", X)
    pa_csv.write_csv(table, tmp_path / "data.csv")
    pq.write_table(table, tmp_path / "data.parquet")
    pq.write_table(table[:1000], tmp_path / "part-1.parquet")
    pq.write_table(table[1000:], tmp_path / "part-2.parquet")
    named = table.select(["north", "east"]).append_column("name", pa.array(["row"] * len(X)))
    pq.write_table(named, tmp_path / "shuffled.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read_csv(text: str) -> tuple[list[str], np.ndarray]:
    header, *rows = csv.reader(io.StringIO(text))
    return header, np.array(rows, float)


@pytest.mark.parametrize("name", ["data.npy", "data.csv", "data.parquet"])
def test_fit_is_sketch_and_decode(folder: Path, name: str) -> None:
    run("fit", name, "-k", 3, "-m", 100, "-o", "centroids.csv", "--seed", 5)
    s = ckm.sketch(name, n_clusters=3, sketch_size=100, pool=1000, random_state=5)
    expected = ckm.decode(s, 3, random_state=5)
    header, values = read_csv((folder / "centroids.csv").read_text())
    assert header == [
        "cluster",
        "weight",
        *(("x0", "x1") if name == "data.npy" else ("east", "north")),
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


def test_sse_is_measured_only_when_asked(folder: Path) -> None:
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


def test_sketch_is_the_library_s(folder: Path) -> None:
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
    assert json.loads(out)["fingerprint"] == s.frequencies.fingerprint
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


def test_decode_is_the_library_s(folder: Path) -> None:
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


@pytest.mark.parametrize("centroids", ["c.csv", "c.json"])
@pytest.mark.parametrize("data", ["data.npy", "data.csv", "data.parquet", "shuffled.parquet"])
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


def test_centroids_of_nameless_rows_fit_a_table_of_as_many_columns(folder: Path) -> None:
    run("fit", "data.npy", "-k", 3, "-o", "c.csv")
    assert json.loads(run("predict", "data.parquet", "-c", "c.csv", "--json")[0]) == json.loads(
        run("predict", "data.npy", "-c", "c.csv", "--json")[0]
    )


def test_inspect_shows_what_the_sketch_holds(folder: Path, X: np.ndarray) -> None:
    run("sketch", "data.parquet", "-m", 40, "--pool", 10, "-o", "s.ckm")
    s = ckm.load("s.ckm")
    out, _ = run("inspect", "s.ckm")
    for fact in (
        "3,000",
        "40",
        "640",
        "multiscale",
        s.frequencies.fingerprint,
        "10 sampled rows",
        "east",
        f"{X[:, 1].mean():.6g}",
    ):
        assert fact in out
    record = json.loads(run("inspect", "s.ckm", "--json")[0])
    assert record["bytes"] == 640
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


@pytest.mark.parametrize("command", COMMANDS)
def test_help_teaches_by_example(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    out, _ = run(command, "--help")
    lines = out.splitlines()
    at = next(i for i, line in enumerate(lines) if line.strip() == "Examples:")
    assert re.match(rf"    .*ckm {command}\b", lines[at + 1])
    assert max(map(len, lines)) <= 80


def test_help_names_every_choice() -> None:
    text = " ".join(run("fit", "--help")[0].split())
    for name in (*DECODERS, *INITS, *DISTRIBUTIONS):
        assert name in text


def test_top_level_help_and_version() -> None:
    out, _ = run("--help")
    assert all(f"  {command} " in out for command in COMMANDS)
    assert "..." not in out.split("Commands:")[1].split("Examples:")[0]  # no summary is cut short
    assert run("--version")[0] == f"ckm {ckm.__version__}\n"


def test_help_loads_nothing_that_computes() -> None:
    heavy = "numpy,numba,scipy,pyarrow,sklearn"
    code = f"import sys, ckm._cli.app; print([m for m in '{heavy}'.split(',') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_exit_statuses_of_the_real_command(folder: Path) -> None:
    good = shell("fit", "data.npy", "-k", 3, "-o", "c.csv")
    assert (good.returncode, good.stdout, good.stderr) == (
        0,
        "",
        "Found 3 centroids of 3,000 rows from 30 frequencies: c.csv\n",
    )
    bad = shell("fit", "nothing.npy", "-k", 3)
    assert (bad.returncode, bad.stdout) == (1, "")
    assert bad.stderr.startswith("Error: There is no file nothing.npy")
    assert bad.stderr.count("\n") == 1
    usage = shell("fit", "data.npy")
    assert usage.returncode == 2
    assert "-k" in usage.stderr


def test_closed_pipe_is_quiet(folder: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    command = [
        sys.executable,
        "-c",
        "from ckm._cli.app import main; main()",
        "fit",
        "data.npy",
        "-k",
        "3",
        "-q",
    ]
    done = subprocess.run(
        command, stdout=write, stderr=subprocess.PIPE, text=True, timeout=120, check=False
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


class InterruptedInput(io.BytesIO):
    """Standard input on which Ctrl-C is pressed while it is read."""

    def read(self, size: int | None = -1) -> bytes:
        raise KeyboardInterrupt


def test_interrupt_ends_with_130(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", InterruptedInput())
    assert run("fit", "-", "-k", 3, expect=130) == ("", "Interrupted.\n")


def test_warnings_are_one_line(folder: Path) -> None:
    np.save("none.npy", np.empty((0, 2)))
    _, err = run("sketch", "none.npy", "-k", 2, "-o", "s.ckm", "-q")
    assert err.startswith("Warning: There are no rows to estimate the scale from")
    assert err.count("\n") == 1
    assert "--scale" in err
    assert ".py" not in err


def test_like_has_a_size_that_clusters_only_check(folder: Path) -> None:
    run("sketch", "part-1.parquet", "-k", 3, "-o", "a.ckm")
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


@pytest.mark.parametrize(
    ("message", "worded"),
    [
        (
            Message("drop such rows first, or use ", Argument("nan", "drop"), "."),
            "drop such rows first, or use --nan drop.",
        ),
        (
            Message("choose with ", Argument("columns", ..., function="ckm.sketch"), "."),
            "choose with --columns A,B.",
        ),
        (
            Message("leave it out: ", Argument("columns", ["a", "b"], function="ckm.sketch"), "."),
            "leave it out: --columns a,b.",
        ),
        (
            Message("or earlier ones: ", Argument("like", ..., function="ckm.sketch"), "."),
            "or earlier ones: ckm sketch --like.",
        ),
        (
            Message("3 rows", Aside(" (n_samples=3)"), ", too few for ", Argument("n_clusters", 5)),
            "3 rows, too few for --clusters 5",
        ),
        (
            Message("give ", Argument("scale", ...), " (a variance), or ", Argument("like", ...)),
            "give --scale (a variance), or --like",
        ),
        (
            Message("use ", Argument("pool", 1000), ", or ", Argument("init", "range")),
            "use --pool 1000, or --init range",
        ),
        (
            Message(Argument("n_jobs"), " must be 1; got 0. The scale is 2."),
            "--jobs must be 1; got 0. The scale is 2.",
        ),
        (Message("continue with ", Argument("resume", True)), "continue with --resume"),
        ("The scale is 2.", "The scale is 2."),
    ],
)
def test_library_messages_name_options(message: str, worded: str) -> None:
    assert in_options(message) == worded


def test_every_option_in_messages_exists() -> None:
    """What an argument is worded as can be typed."""
    commands = get_command(app).commands.values()
    options = {option for command in commands for p in command.params for option in p.opts}
    assert set(errors.OPTIONS.values()) <= options


def test_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    out, err = run("demo", "--rows", 20000, "--folder", "play/demo")
    assert (tmp_path / "play/demo/demo.png").read_bytes().startswith(b"\x89PNG")
    assert pq.read_metadata("play/demo/mixture.parquet").num_rows == 20000
    assert ckm.load("play/demo/mixture.ckm").pool is None
    for words in (
        "total time",
        "8.0 kB",
        "800.0 kB",
        "SSE / k-means' SSE",
        "clusters found",
        "In this run",
        "ckm fit play/demo/mixture.parquet -k 10",
    ):
        assert words in out
    assert "not counted" in err


def test_demo_without_matplotlib_says_how_to_get_the_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("matplotlib", "matplotlib.figure", "ckm._display.plots"):
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.chdir(tmp_path)
    out, _ = run("demo", "--rows", 2000)
    assert "pip install 'compressive-kmeans[plot]'" in out
    assert not (tmp_path / "demo/demo.png").exists()


def test_verbose_says_what_is_done(folder: Path) -> None:
    done = shell("fit", "data.parquet", "-k", 3, "-m", 60, "--pool", 0, "-v")
    assert "variance" in done.stderr
    assert "sketching 2 columns with 60 frequencies (multiscale)" in done.stderr
    assert re.search(r"sketched 3000 rows in \d+\.\d\d s", done.stderr)
    assert re.search(r"3 atoms of one width: cost \d", done.stderr)
    assert re.search(r"decoded in \d+\.\d\d s", done.stderr)
    assert "atoms" not in shell("fit", "data.parquet", "-k", 3, "-m", 60, "--pool", 0).stderr


# Checkpoints


def test_a_stopped_pass_goes_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("sketch", "part-*.parquet", "-k", 3, "-o", "whole.ckm", "--pool", 20)
    with monkeypatch.context() as patch:
        stop_after_one_block(patch)
        _, err = run(
            "sketch",
            "part-*.parquet",
            "-k",
            3,
            "-o",
            "s.ckm",
            "--pool",
            20,
            "--checkpoint",
            "s.part",
            expect=130,
        )
    assert (
        "Stopped. The unfinished sketch is in s.part; the same command with --resume continues "
        "from there." in err
    )
    assert not Path("s.ckm").exists()
    _, err = run(
        "sketch",
        "part-*.parquet",
        "-k",
        3,
        "-o",
        "s.ckm",
        "--pool",
        20,
        "--checkpoint",
        "s.part",
        expect=1,
    )
    assert "There is a checkpoint s.part already; continue from it with --resume, or " in err
    _, err = run(
        "sketch",
        "part-*.parquet",
        "-k",
        3,
        "-o",
        "s.ckm",
        "--pool",
        21,
        "--checkpoint",
        "s.part",
        "--resume",
        expect=1,
    )
    assert "was written with --pool 20, and now --pool 21 is given" in err
    run(
        "sketch",
        "part-*.parquet",
        "-k",
        3,
        "-o",
        "s.ckm",
        "--pool",
        20,
        "--checkpoint",
        "s.part",
        "--resume",
    )
    assert Path("s.ckm").read_bytes() == Path("whole.ckm").read_bytes()
    assert not Path("s.part").exists(), "it is not needed any more"


def stop_after_one_block(patch: pytest.MonkeyPatch) -> None:
    from ckm._kernels.cpu import dense as kernel

    seen, tally = [0], kernel.tally

    def interrupted(*args: Any) -> Any:
        seen[0] += 1
        if seen[0] > 1:
            raise KeyboardInterrupt
        return tally(*args)

    patch.setattr(kernel, "tally", interrupted)


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


def test_csv_has_no_place_for_units(folder: Path) -> None:
    for command in (
        ("fit", "data.parquet", "-k", 3, "--standardize"),
        ("decode", "s.ckm", "-k", 3),
    ):
        if command[0] == "decode":
            run("sketch", "data.parquet", "-k", 3, "--standardize", "-o", "s.ckm")
        _, err = run(*command, "-o", "c.csv", expect=1)
        assert "CSV has no place for the units of standardised columns; name a .json file" in err
        _, err = run(*command, expect=1)
        assert "Centroids in a pipe are CSV, which has no place for the units" in err
        out, _ = run(*command, "--json")
        assert "units" in json.loads(out)


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
