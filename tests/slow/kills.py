"""Kill `ckm sketch` at random moments and resume it, many times a second.

Run as a program, with a folder to work in: ``python tests/slow/kills.py FOLDER --kind csv``. It
loads the library and its compiled code once, and forks a process for each run of the command line.
The last line it prints is a record in JSON. Where a promise is broken it raises `AssertionError`,
with the seed and the number of the file, from which the same signals at the same delays follow.
"""

import argparse
import collections
import contextlib
import dataclasses
import gc
import gzip
import json
import os
import random
import resource
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import scipy.sparse
import zarr

import ckm
from ckm._cli.app import main
from ckm._sketching.checkpoint import from_bytes
from ckm._sources.settings import DEFAULT_SETTINGS

N_ROWS = 300_000
# Small chunks, so that a pass of a fraction of a second has many checkpoints. Rows are then joined
# to chunks of 16384.
CHUNK_BYTES = 2**18
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGKILL)
# Kills of one file, at most: the next run is left to end.
MAX_KILLS = 4
PACKAGE = str(Path(ckm.__file__).parent)
OUTPUT = Path("out.ckm")
CHECKPOINT = Path("out.part")
LOG = Path("log.txt")
OLD = b"what was there before"
# Seconds after which a run is taken for stuck.
TIMEOUT = 120.0


def rows() -> np.ndarray:
    """Three columns with some missing values, and one of weights."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(N_ROWS, 4)).round(3)
    table[rng.integers(N_ROWS, size=300), 1] = np.nan
    table[:, 3] = rng.integers(0, 5, size=N_ROWS)
    return table


def as_table(X: np.ndarray) -> pa.Table:
    return pa.table(dict(zip("abcw", X.T, strict=True)))


def write_npy(X: np.ndarray) -> None:
    np.save("0.npy", X[:, :3])


def write_fvecs(X: np.ndarray) -> None:
    widths = np.full((len(X), 1), 3, np.int32)
    np.hstack([widths.view(np.float32), X[:, :3].astype(np.float32)]).tofile("0.fvecs")


def write_npz(X: np.ndarray) -> None:
    scipy.sparse.save_npz("0.npz", scipy.sparse.csr_array(X[:, :3]))


def write_csv(X: np.ndarray) -> None:
    pa_csv.write_csv(as_table(X), "0.csv")


def write_csv_gz(X: np.ndarray) -> None:
    """Two members, as `cat a.gz b.gz` makes them."""
    write_csv(X)
    text = Path("0.csv").read_bytes()
    middle = len(text) // 2
    members = [gzip.compress(part, 1) for part in (text[:middle], text[middle:])]
    Path("0.csv.gz").write_bytes(b"".join(members))
    Path("0.csv").unlink()


def write_csv_zst(X: np.ndarray) -> None:
    with pa.CompressedOutputStream("0.csv.zst", "zstd") as file:
        pa_csv.write_csv(as_table(X), file)


def write_parquet(X: np.ndarray) -> None:
    pq.write_table(as_table(X), "0.parquet", row_group_size=13_333)


def write_arrow(X: np.ndarray) -> None:
    table = as_table(X)
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file("0.arrow", table.schema, options=options) as file:
        file.write_table(table, max_chunksize=7_777)


def write_arrow_stream(X: np.ndarray) -> None:
    table = as_table(X)
    with pa.ipc.new_stream("0.arrows", table.schema) as file:
        file.write_table(table, max_chunksize=7_777)


def write_hdf5(X: np.ndarray) -> None:
    with h5py.File("0.h5", "w") as file:
        file.create_dataset("rows", data=X[:, :3], chunks=(1_701, 3))


def write_zarr(X: np.ndarray) -> None:
    shape = (len(X), 3)
    array = zarr.open("0.zarr", mode="w", shape=shape, chunks=(40_001, 3), dtype="f8")
    array[:] = X[:, :3]


def write_several_parquet(X: np.ndarray) -> None:
    for i, part in enumerate(np.array_split(X, 7)):
        pq.write_table(as_table(part), f"{i}.parquet", row_group_size=9_999)


def write_several_csv(X: np.ndarray) -> None:
    for i, part in enumerate(np.array_split(X, 5)):
        pa_csv.write_csv(as_table(part), f"{i}.csv")


@dataclasses.dataclass(frozen=True)
class Kind:
    """How to write the rows, and the arguments that name them."""

    write: Callable[[np.ndarray], None]
    arguments: tuple[str, ...]


PLAIN = ("--columns", "a,b,c")
WEIGHTED = ("--columns", "a,b,c", "--weight-column", "w")
KINDS = {
    "npy": Kind(write_npy, ("0.npy",)),
    "csv": Kind(write_csv, ("0.csv", *WEIGHTED)),
    "csv.gz": Kind(write_csv_gz, ("0.csv.gz", *PLAIN)),
    "csv.zst": Kind(write_csv_zst, ("0.csv.zst", *PLAIN)),
    "parquet": Kind(write_parquet, ("0.parquet", *PLAIN)),
    "arrow": Kind(write_arrow, ("0.arrow", *PLAIN)),
    "arrow-stream": Kind(write_arrow_stream, ("0.arrows", *WEIGHTED)),
    "hdf5": Kind(write_hdf5, ("0.h5",)),
    "zarr": Kind(write_zarr, ("0.zarr",)),
    "npz": Kind(write_npz, ("0.npz",)),
    "fvecs": Kind(write_fvecs, ("0.fvecs",)),
    "several-parquet": Kind(write_several_parquet, ("*.parquet", *WEIGHTED)),
    "several-csv": Kind(write_several_csv, ("*.csv", *PLAIN)),
}


@dataclasses.dataclass
class Record:
    """What was done, and what was seen."""

    kind: str
    seed: int
    files: int = 0  # that were made in spite of kills, each of them byte-identical
    kills: int = 0  # that met a checkpoint
    refusals: int = 0  # runs that a limit of the size of files ended
    by_signal: dict[str, int] = dataclasses.field(default_factory=collections.Counter)
    statuses: dict[str, int] = dataclasses.field(default_factory=collections.Counter)
    left_behind: dict[str, int] = dataclasses.field(default_factory=collections.Counter)
    shares: list[float] = dataclasses.field(default_factory=list)  # of the rows, when killed

    def summary(self) -> str:
        """One line of JSON."""
        found = dict(vars(self))
        found["shares"] = [round(float(q), 2) for q in np.quantile(self.shares or [0], [0, 0.5, 1])]
        found["places"] = len(set(self.shares))
        return json.dumps(found)


def fork_command(arguments: tuple[str, ...], max_bytes: int | None = None) -> int:
    """Start the command line in a process of its own; its number.

    With `max_bytes`, no file can become larger there.
    """
    # A signal waits until the process is ready for it.
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    number = os.fork()
    if number:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        return number
    try:
        log = os.open(LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1)
        os.dup2(log, 2)
        if max_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (max_bytes, max_bytes))
        sys.argv = ["ckm", *arguments]
        # A shell may have started this program with SIGINT ignored.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        # Nothing above catches SystemExit: the interpreter ends as that of any command does.
        main()
    except KeyboardInterrupt as error:
        places = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
        if any(place.startswith(PACKAGE) for place in places):
            raise
        os._exit(130)  # before the command began
    raise AssertionError("a command ends the process")


def wait_for(number: int) -> int:
    """The exit status of a process; negative for a signal."""
    deadline = time.monotonic() + TIMEOUT
    while time.monotonic() < deadline:
        found, status = os.waitpid(number, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.001)
    os.kill(number, signal.SIGABRT)
    raise AssertionError(f"stuck after {TIMEOUT} s: {LOG.read_text()}")


def has_ended(number: int) -> bool:
    """Whether a process has ended; it still has to be waited for."""
    return os.waitid(os.P_PID, number, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


class Killer:
    """Runs one command again and again, with signals at random moments."""

    def __init__(self, kind: str, seed: int) -> None:
        self.record = Record(kind, seed)
        common = ("-m", "60", "--nan", "drop", "--pool", "20", "--seed", "5", "-q")
        self._command = ("sketch", *KINDS[kind].arguments, *common, "-o", str(OUTPUT))
        self._checkpoint = ("--checkpoint", str(CHECKPOINT), "--checkpoint-interval", "0")
        self._n_rows = N_ROWS
        KINDS[kind].write(rows())
        # Everything is imported and compiled here, once: the processes that are forked inherit it.
        sys.argv = ["ckm", *self._command, "--jobs", "1"]
        with contextlib.suppress(SystemExit):
            main()
        # What is frozen is not looked through again by each process that ends.
        gc.collect()
        gc.freeze()
        self._clear()
        process = fork_command(self._resumed())
        while not CHECKPOINT.exists():
            assert not has_ended(process), LOG.read_text()
            time.sleep(0.0005)
        began = time.monotonic()
        while not OUTPUT.exists():
            time.sleep(0.0005)
        # The seconds during which there is a checkpoint.
        self._seconds = time.monotonic() - began
        assert wait_for(process) == 0
        self.expected = OUTPUT.read_bytes()

    def make_file(self, number: int) -> None:
        """Make one file, killed a few times on the way."""
        chance = random.Random(f"{self.record.kind} {self.record.seed} {number}")
        self._clear()
        is_replaced = chance.random() < 0.5
        if is_replaced:
            OUTPUT.write_bytes(OLD)
        n_kills = 0
        while n_kills < chance.randint(1, MAX_KILLS):
            if not self._kill_once(chance):
                # It ended before the signal.
                break
            n_kills += 1
            self._check(OLD if is_replaced else None)
        if OUTPUT.exists() and OUTPUT.read_bytes() == self.expected and not CHECKPOINT.exists():
            self.record.files += bool(n_kills)
            return
        self._run_to_the_end()
        assert OUTPUT.read_bytes() == self.expected, "the file differs"
        assert not CHECKPOINT.exists(), "the checkpoint is left"
        self.record.files += bool(n_kills)

    def fill_disk(self, number: int) -> None:
        """Let the size of files be limited at random, then end without the limit."""
        chance = random.Random(f"{self.record.kind} {self.record.seed} {number} disk")
        self._clear()
        OUTPUT.write_bytes(OLD)
        if chance.random() < 0.5:
            self._kill_once(chance)
        max_bytes = chance.randrange(len(self.expected) + 2000)
        status = wait_for(fork_command(self._resumed(), max_bytes))
        self._note_status(status)
        if status:
            self.record.refusals += 1
            message = LOG.read_text()
            assert status == 1, message
            # The text itself may not fit into the log.
            assert message == "" or "Error: Cannot " in message or len(message) == max_bytes
            self._check(OLD)
        self._run_to_the_end()
        assert OUTPUT.read_bytes() == self.expected, "the file differs"

    def _resumed(self) -> tuple[str, ...]:
        return (*self._command, *self._checkpoint, "--resume")

    def _run_to_the_end(self) -> None:
        status = wait_for(fork_command(self._resumed()))
        assert status == 0, f"status {status}: {LOG.read_text()}"

    def _kill_once(self, chance: random.Random) -> bool:
        """Start or resume the command and send a signal while there is a checkpoint; False if it
        ended before.
        """
        name = chance.choice(SIGNALS)
        delay = chance.uniform(0, self._seconds)
        process = fork_command(self._resumed())
        while not CHECKPOINT.exists() and not has_ended(process):
            time.sleep(0.0005)
        deadline = time.monotonic() + delay
        while time.monotonic() < deadline and not has_ended(process):
            time.sleep(0.0005)
        met = CHECKPOINT.exists()
        os.kill(process, name)
        status = wait_for(process)
        self._note_status(status)
        assert status != 1, LOG.read_text()
        if status == 0 or not met or not (CHECKPOINT.exists() or status == 130):
            # It ended, or there was no checkpoint any more when the signal came.
            return False
        self.record.kills += 1
        self.record.by_signal[name.name] += 1
        return True

    def _note_status(self, status: int) -> None:
        self.record.statuses[str(status)] += 1
        text = LOG.read_text(errors="replace")
        # Python itself says so where a signal meets a callback, and goes on.
        assert "Traceback" not in text or "Exception ignored in" in text, text
        # 130: SIGINT, and SIGTERM during the pass; others are deaths by the signal itself, to which
        # SIGINT leads only when the interpreter is about to end.
        is_done = OUTPUT.exists() and OUTPUT.read_bytes() == self.expected
        expected = (0, 1, 130, -signal.SIGTERM, -signal.SIGKILL)
        is_late = status == -signal.SIGINT and is_done and not CHECKPOINT.exists()
        assert status in expected or is_late, f"status {status}: {text}"

    def _check(self, old: bytes | None) -> None:
        """After a kill: the output is complete or untouched, and the checkpoint is valid."""
        found = OUTPUT.read_bytes() if OUTPUT.exists() else None
        assert found in (old, self.expected), "the output is neither the old nor the new file"
        if CHECKPOINT.exists():
            checkpoint = from_bytes(CHECKPOINT.read_bytes())
            self.record.shares.append(checkpoint.rows / self._n_rows)
        else:
            assert found == self.expected or old is not None, "the checkpoint is lost"

    def _clear(self) -> None:
        """Remove what the last file left; count what is left behind by a kill."""
        for path in (*Path().glob(".ckm-*.part"), *Path().glob("*.lock")):
            self.record.left_behind["temporary" if path.suffix == ".part" else "lock"] += 1
            path.unlink()
        OUTPUT.unlink(missing_ok=True)
        CHECKPOINT.unlink(missing_ok=True)


def run() -> None:
    """Make files of one kind until there are enough kills."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kind", choices=KINDS, required=True)
    parser.add_argument("--files", type=int, default=5)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--disks", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    object.__setattr__(DEFAULT_SETTINGS, "chunk_bytes", CHUNK_BYTES)
    object.__setattr__(DEFAULT_SETTINGS, "csv_block_bytes", CHUNK_BYTES)
    shutil.rmtree(given.folder, ignore_errors=True)
    given.folder.mkdir(parents=True)
    os.chdir(given.folder)
    owner = os.getpid()
    killer = Killer(given.kind, given.seed)
    number = 0
    while killer.record.files < given.files or killer.record.kills < given.kills:
        _try(lambda: killer.make_file(number), f"seed {given.seed}, file {number}", owner)  # noqa: B023
        number += 1
    for number in range(given.disks):
        _try(lambda: killer.fill_disk(number), f"seed {given.seed}, disk {number}", owner)  # noqa: B023
    print(killer.record.summary())


def _try(work: Callable[[], None], where: str, owner: int) -> None:
    """Do the work; a failure says where, in this process only."""
    try:
        work()
    except AssertionError as error:
        if os.getpid() == owner:
            error.add_note(where)
        raise


if __name__ == "__main__":
    sys.exit(run())
