"""The command line in a shell: help, exit statuses, pipes, interrupts, warnings and messages."""

import inspect
import io
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import example_rows, run, shell, write_example_files
from typer.main import get_command

import ckm
from ckm._cli import errors
from ckm._cli.app import app
from ckm._cli.errors import in_options
from ckm._core.laws import DISTRIBUTIONS
from ckm._decoding.api import DECODERS
from ckm._decoding.starts import INITS
from ckm._messages import Argument, Aside, Message

COMMANDS = ("fit", "sketch", "merge", "decode", "predict", "report", "inspect", "demo")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with files of the same rows."""
    write_example_files(tmp_path, example_rows())
    monkeypatch.chdir(tmp_path)
    return tmp_path


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


@pytest.mark.slow
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
            "3 rows, too few for --n-clusters 5",
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
            "--n-jobs must be 1; got 0. The scale is 2.",
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


FUNCTIONS = {
    "fit": (ckm.CompressiveKMeans, ckm.sketch, ckm.decode),
    "sketch": (ckm.sketch,),
    "decode": (ckm.decode,),
    "curve": (ckm.curve,),
    "predict": (ckm.Solution.predict,),
    "monitor": (ckm.Monitor, ckm.sketch),
    "compare": (ckm.compare,),
    "mixture": (ckm.fit_mixture,),
    "report": (ckm.report,),
}
# Options that have no argument in Python: files, what is printed, clusters of machines.
ONLY_HERE = {
    "--output",
    "--save-sketch",
    "--state",
    "--centroids",
    "--sse",
    "--json",
    "--quiet",
    "--verbose",
    "--fail-above",
    "--fail-on-change",
    "--robust",  # standardize="robust"
    "--engine",
    "--scheduler",
    "--master",
    "--address",
}


@pytest.mark.parametrize("command", FUNCTIONS)
def test_options_have_the_names_of_arguments(command: str) -> None:
    """What exists in both worlds has one name; shorter ones may stand beside it."""
    arguments = {
        "--" + name.replace("_", "-")
        for function in FUNCTIONS[command]
        for name in inspect.signature(function).parameters
    }
    for parameter in get_command(app).commands[command].params:
        names = {name for name in parameter.opts if name.startswith("--")}
        assert not names or names & (arguments | ONLY_HERE), names
    for name, option in errors.OPTIONS.items():
        assert option == "--" + name.replace("_", "-")


def test_the_shell_can_complete_commands() -> None:
    """What `--install-completion` installs asks for these."""
    done = subprocess.run(
        [sys.executable, "-c", "from ckm._cli.app import app; app(prog_name='ckm')"],
        env=os.environ
        | {"_CKM_COMPLETE": "complete_bash", "COMP_WORDS": "ckm rep", "COMP_CWORD": "1"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.split() == ["report"]


@pytest.mark.slow
def test_verbose_shows_each_step(folder: Path) -> None:
    done = shell("fit", "data.parquet", "-k", 3, "-m", 60, "--pool", 0, "-v")
    assert re.search(r"\d+ cells: residual \d", done.stderr)
    done = shell("fit", "data.parquet", "-k", 3, "-m", 60, "--pool", 0, "--cells", 0, "-v")
    assert "variance" in done.stderr
    assert "sketching 2 columns with 60 frequencies (multiscale)" in done.stderr
    assert re.search(r"sketched 3000 rows in \d+\.\d\d s", done.stderr)
    assert re.search(r"3 atoms of one width: cost \d", done.stderr)
    assert re.search(r"decoded in \d+\.\d\d s", done.stderr)
    assert "atoms" not in shell("fit", "data.parquet", "-k", 3, "-m", 60, "--pool", 0).stderr


# Checkpoints


def test_an_interrupted_pass_is_resumed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_the_package_is_the_command() -> None:
    command = [sys.executable, "-m", "ckm", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == f"ckm {ckm.__version__}\n"


def test_the_command_that_describe_prints_runs(folder: Path) -> None:
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(size=400), 1000 * rng.normal(size=400)])
    text = "\n".join(f"{x},{y if i % 9 else ''}" for i, (x, y) in enumerate(rows))
    Path("gaps.csv").write_text(f"a,b\n{text}\n", encoding="utf-8")
    out, _ = run("describe", "gaps.csv")
    (command,) = re.findall(r"To follow this advice: ckm (.*)", out)
    assert command == "fit gaps.csv -k K --standardize --nan drop"
    run(*command.replace("-k K", "-k 2").split())
