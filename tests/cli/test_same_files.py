"""No two files of a command may be one file, however the two names are spelled."""

import itertools
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from command import fail, run, shell

import ckm
from ckm._util.locks import WriteLock

FILES = ("data.npy", "data.csv", "s.ckm", "c.csv", "c.json", "l.ckm")
# Commands with a name for each file that they take, of which any two are made equal. Names of
# outputs may be those of the files they would destroy.
COMMANDS: dict[str, tuple[tuple[object, ...], dict[str, str]]] = {
    "fit": (("fit", "-k", 2), {"": "data.csv", "-o": "out.csv", "--save-sketch": "out.ckm"}),
    "sketch": (
        ("sketch", "-k", 2),
        {"": "data.npy", "-o": "out.ckm", "--checkpoint": "out.part", "--like": "l.ckm"},
    ),
    "merge": (("merge",), {"": "s.ckm", "-o": "out.ckm"}),
    "decode": (("decode", "-k", 2), {"": "s.ckm", "-o": "out.csv"}),
    "predict": (("predict",), {"": "data.csv", "-o": "out.csv", "--centroids": "c.csv"}),
}
OUTPUTS = {"-o", "--save-sketch", "--checkpoint"}


def same(name: str, folder: Path) -> str:
    return name


def dotted(name: str, folder: Path) -> str:
    return f"./{name}"


def absolute(name: str, folder: Path) -> str:
    return str(folder / name)


def through_a_folder(name: str, folder: Path) -> str:
    Path("elsewhere").symlink_to(folder)
    return f"elsewhere/{name}"


def linked(name: str, folder: Path) -> str:
    link = f"link{Path(name).suffix}"
    Path(link).symlink_to(name)
    return link


def hard_linked(name: str, folder: Path) -> str:
    if not Path(name).exists():
        Path(name).write_bytes(b"old")
    link = f"link{Path(name).suffix}"
    os.link(name, link)
    return link


SPELLINGS = [same, dotted, absolute, through_a_folder, linked, hard_linked]
PAIRS = [
    (command, first, second)
    for command, (_, names) in COMMANDS.items()
    for first, second in itertools.permutations(names, 2)
    if second in OUTPUTS
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).normal(size=(200, 2))
    np.save("data.npy", X)
    np.savetxt("data.csv", X, delimiter=",", header="a,b", comments="")
    s = ckm.sketch(X, n_clusters=2, random_state=0)
    s.save("s.ckm")
    s.save("l.ckm")
    Path("c.csv").write_text("cluster,weight,a,b\n0,1.0,0.0,0.0\n")
    return tmp_path


@pytest.mark.parametrize("spell", SPELLINGS, ids=lambda spell: spell.__name__)
@pytest.mark.parametrize(("command", "first", "second"), PAIRS, ids=map(" ".join, PAIRS))
def test_two_files_of_a_command_are_never_one(
    folder: Path, command: str, first: str, second: str, spell: Callable[[str, Path], str]
) -> None:
    start, names = COMMANDS[command]
    chosen = dict(names)
    chosen[second] = spell(chosen[first], folder)
    before = {path: path.read_bytes() for path in Path().iterdir() if path.is_file()}
    arguments = [word for option, name in chosen.items() for word in (option, name) if word]
    # A name with the wrong ending is wrong usage; otherwise the files are compared.
    wrong_ending = second != "--checkpoint" and (
        Path(chosen[second]).suffix != Path(names[second]).suffix
    )
    message = fail(*start, *arguments, status=2 if wrong_ending else 1)
    assert "name" in message
    assert {path: path.read_bytes() for path in Path().iterdir() if path.is_file()} == before


def test_a_finished_sketch_is_not_removed_as_its_checkpoint(folder: Path) -> None:
    message = fail("sketch", "data.npy", "-k", 2, "--checkpoint", "x.ckm", "-o", "x.ckm")
    assert message == ("Error: Cannot write x.ckm: it is also the file of -o; choose another name.")
    run("sketch", "data.npy", "-k", 2, "--checkpoint", "x.part", "-o", "x.ckm")
    assert Path("x.ckm").exists()
    assert not Path("x.part").exists()


def test_standard_input_is_a_file_too(folder: Path) -> None:
    before = Path("data.csv").read_bytes()
    with open("data.csv", "rb") as rows:
        done = shell("fit", "-", "-k", 2, "-o", "data.csv", stdin=rows)
    assert done.returncode == 1
    assert "it is the same file as -, which is one of the inputs" in done.stderr
    assert Path("data.csv").read_bytes() == before


def test_an_input_is_named_once_however_it_is_spelled(folder: Path) -> None:
    os.link("data.npy", "again.npy")
    assert "given twice" in fail("fit", "data.npy", "again.npy", "-k", 2)
    shutil.copy("data.npy", "other.npy")
    run("fit", "data.npy", "other.npy", "-k", 2)


def test_an_output_belongs_to_one_process_at_a_time(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(100, 2)))
    output = tmp_path / "s.ckm"
    arguments = ("sketch", tmp_path / "x.npy", "-k", 2, "-o", output)
    with WriteLock(output):
        _, error = run(*arguments, expect=1)
        assert "s.ckm: this process is writing it; wait until it ends" in error
        process = shell(*arguments)
        assert process.returncode == 1
        assert f"another process ({os.getpid()}) is writing it" in process.stderr
    # Commands release their locks.
    run(*arguments)
    run(*arguments)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s.ckm", "x.npy"]


@pytest.mark.parametrize(
    ("names", "lost"),
    [
        (("-o", "out.ckm", "--checkpoint", "out.ckm.lock"), "out.ckm.lock"),
        (("-o", "s.ckm", "--checkpoint", "./s.ckm.lock"), "s.ckm.lock"),
        (("-o", "out.ckm", "--like", "out.ckm.lock"), "out.ckm.lock"),
        (("-o", "link.ckm", "--checkpoint", "out.ckm.lock"), "out.ckm.lock"),
    ],
)
def test_no_file_is_the_lock_of_another(folder: Path, names: tuple[str, ...], lost: str) -> None:
    Path("link.ckm").symlink_to("out.ckm")
    if "--like" in names:
        shutil.copy("l.ckm", lost)
    before = {path: path.read_bytes() for path in Path().iterdir() if path.is_file()}
    size = () if "--like" in names else ("-k", 2)
    message = fail("sketch", "data.npy", *size, *names)
    assert "its lock would be" in message
    assert message.endswith("choose another name.")
    assert {path: path.read_bytes() for path in Path().iterdir() if path.is_file()} == before


def test_the_files_of_the_demo_are_three(folder: Path) -> None:
    Path("demo").mkdir()
    Path("demo/mixture.ckm").symlink_to("mixture.parquet")
    message = fail("demo", "--rows", 100)
    assert "it is the same file as demo/mixture.parquet" in message
    assert not Path("demo/mixture.parquet").exists()


def test_the_files_of_the_demo_belong_to_one_process(folder: Path) -> None:
    Path("demo").mkdir()
    with WriteLock("demo/mixture.ckm"):
        assert "is writing it" in fail("demo", "--rows", 100)
