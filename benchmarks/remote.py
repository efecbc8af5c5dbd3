"""Sketching Parquet from an S3 server beside the same files on disk: processor time per row of the
client, and its peak memory.

Rows are those of `benchmarks.sources`. The server (moto) runs in a process of its own on this
machine, over HTTP without encryption, so that its time is not counted: what is compared is what
requests, answers and buffers cost the client. Each round sketches the files and the objects by
turns, pilot included; the ratio is the median over the rounds. Reading alone, without a sketch, is
measured too.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import ckm
from benchmarks.sources import FILE_ROWS, GROUP_ROWS, N_COLUMNS, ROOT, M, peak_memory, write_files

ROUNDS = 3
BUCKET = "benchmark"
RATIO = 1.25
LIMIT_MB = 500
_ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "benchmark",
    "AWS_SECRET_ACCESS_KEY": "benchmark",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


@contextmanager
def s3_server() -> Iterator[str]:
    """An S3 server in a process of its own; yields its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", port), 1.0).close()
                break
            except OSError:
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def upload(folder: Path) -> None:
    import pyarrow.fs as pa_fs

    store = pa_fs.S3FileSystem(
        endpoint_override=os.environ["AWS_ENDPOINT_URL"], allow_bucket_creation=True
    )
    store.create_dir(BUCKET)
    pa_fs.copy_files(
        str(folder), BUCKET, source_filesystem=pa_fs.LocalFileSystem(), destination_filesystem=store
    )


def measure_time(folder: Path, rounds: int) -> dict[str, Any]:
    """Processor seconds per row of this process, from files and from the server, by turns."""
    places = {"files": str(folder), "s3": f"s3://{BUCKET}/"}
    rng = np.random.default_rng(0)
    # What is compiled or imported once is not counted.
    ckm.sketch(rng.normal(size=(1000, N_COLUMNS)).astype(np.float32), sketch_size=M)
    found: dict[str, list[float]] = {}
    for _ in range(rounds):
        for name, place in places.items():
            for what, run in {"sketch": _sketch, "read": _read}.items():
                began = time.process_time()
                count = run(place)
                found.setdefault(f"{what}_{name}", []).append(
                    1e9 * (time.process_time() - began) / count
                )
    return {"rows": count, **found}


def _sketch(place: str) -> int:
    return ckm.sketch(place, sketch_size=M, cells=0, random_state=0).count


def _read(place: str) -> int:
    """One frequency costs next to nothing beside the reading."""
    return ckm.sketch(place, sketch_size=1, cells=0, scale=1.0, random_state=0).count


def measure_memory(rounds: int) -> dict[str, Any]:
    """The peak memory of this process for one sketch of the objects."""
    _sketch(f"s3://{BUCKET}/")
    return {"peak_mb": peak_memory()}


def in_own_process(what: str, folder: Path, rounds: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.remote", "--measure", what]
    command += ["--folder", str(folder), "--rounds", str(rounds)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    return json.loads(done.stdout)


def compare(rows: int, rounds: int, quick: bool) -> None:
    from benchmarks.harness import Target, report, show

    with tempfile.TemporaryDirectory(prefix="ckm-remote-") as folder, s3_server() as url:
        os.environ.update(_ENVIRONMENT, AWS_ENDPOINT_URL=url)
        write_files(Path(folder), rows)
        upload(Path(folder))
        found = in_own_process("time", Path(folder), rounds)
        found |= in_own_process("memory", Path(folder), rounds)
    ratios = {}
    for what in ("sketch", "read"):
        pairs = np.array(found[f"{what}_s3"]) / np.array(found[f"{what}_files"])
        ratios[what] = float(np.median(pairs))
    show(
        f"Parquet, {rows:.0e} rows of {N_COLUMNS} columns of float32, m = {M}: processor time of "
        "the client, ns per row",
        ["", "files", "s3", "s3 / files"],
        [
            [
                what,
                float(np.median(found[f"{what}_files"])),
                float(np.median(found[f"{what}_s3"])),
                ratios[what],
            ]
            for what in ("sketch", "read")
        ],
    )
    targets = [
        Target("sketch: processor time per row, s3 / files", RATIO, ratios["sketch"], at_most=True),
        Target("peak memory of the client, MB", LIMIT_MB, found["peak_mb"], at_most=True),
    ]
    settings = {
        "m": M,
        "columns": N_COLUMNS,
        "file_rows": FILE_ROWS,
        "group_rows": GROUP_ROWS,
        "rounds": rounds,
    }
    report("remote", quick, settings, found | {"ratios": ratios}, targets)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, one round")
    parser.add_argument("--rows", type=float, help="default: 1e7, quick: 1e6")
    parser.add_argument("--rounds", type=int, help=f"default: {ROUNDS}, quick: 1")
    parser.add_argument("--measure", choices=["time", "memory"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    rounds = arguments.rounds or (1 if arguments.quick else ROUNDS)
    if arguments.measure == "time":
        print(json.dumps(measure_time(arguments.folder, rounds)))
    elif arguments.measure == "memory":
        print(json.dumps(measure_memory(rounds)))
    else:
        rows = int(arguments.rows or (1e6 if arguments.quick else 1e7))
        compare(rows, rounds, arguments.quick)


if __name__ == "__main__":
    main()
