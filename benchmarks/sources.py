"""Sketching Parquet files: peak memory of the process at any number of rows, and throughput beside
the in-memory kernel, in one run.

Rows are float32 in ten columns, in files of ten million rows with row groups of a million, written
to a temporary folder first (compressed by Snappy as usual, but without dictionaries, which hardly
any value would share). Memory is that of a process of its own that does nothing but sketch the
files, pilot and all. Throughput is measured in another, which sketches an array in memory and one
file by turns, with the same frequencies and threads.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import ckm

N_COLUMNS = 10
M = 500
FILE_ROWS = 10_000_000
GROUP_ROWS = 1_000_000
MEMORY_ROWS = 2**21
ROUNDS = 3
LIMIT_MB, CONSTANT, SHARE = 400, 1.1, 0.8


def write_files(folder: Path, rows: int) -> None:
    """A mixture of Gaussians, with means of its own in each file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    schema = pa.schema([(f"x{i}", pa.float32()) for i in range(N_COLUMNS)])
    for number, start in enumerate(range(0, rows, FILE_ROWS)):
        means = rng.normal(size=(10, N_COLUMNS)).astype(np.float32) * 5
        with pq.ParquetWriter(
            folder / f"{number:03}.parquet", schema, use_dictionary=False
        ) as writer:
            for low in range(start, min(start + FILE_ROWS, rows), GROUP_ROWS):
                count = min(GROUP_ROWS, rows - low)
                X = means[rng.integers(10, size=count)] + rng.standard_normal(
                    (count, N_COLUMNS), np.float32
                )
                writer.write_table(pa.table(list(X.T), schema=schema))


def measure_memory(folder: Path) -> dict[str, float]:
    """What this process needs for one sketch of the files, and what it needed before any of them
    was opened.
    """
    ckm.sketch(
        np.random.default_rng(0).normal(size=(1000, N_COLUMNS)).astype(np.float32),
        sketch_size=M,
        random_state=0,
    )
    before = peak_memory()
    s = ckm.sketch(folder, sketch_size=M, random_state=0)
    return {"rows": s.count, "before_mb": before, "peak_mb": peak_memory()}


def peak_memory() -> float:
    """Of this process so far, in MB. Where Linux tells it, its own: `getrusage` begins with what
    the parent had.
    """
    status = Path("/proc/self/status")
    if status.exists():
        return float(status.read_text().split("VmHWM:")[1].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
        2**20 if sys.platform == "darwin" else 1024
    )


def measure_speed(folder: Path, rounds: int) -> dict[str, float]:
    """Rows a second of one file at a time beside those of an array in memory just before: the
    median of these ratios.

    `cpu` counts the seconds of all threads. On a machine that does nothing else both are the same;
    on one that is shared the latter says what reading costs. What a pilot takes, in the same units,
    is measured once.
    """
    X = np.random.default_rng(0).standard_normal((MEMORY_ROWS, N_COLUMNS), np.float32)
    f = ckm.sketch(X, sketch_size=M, random_state=0).frequencies
    turns = [
        (timed(X, like=f), timed(file, like=f))
        for _ in range(rounds)
        for file in sorted(folder.glob("*.parquet"))
    ]
    in_memory, from_files = (
        np.array([memory for memory, _ in turns]),
        np.array([files for _, files in turns]),
    )
    wall, cpu = np.median(in_memory / from_files, axis=0)
    one_pass, with_pilot = timed(folder, like=f), timed(folder, sketch_size=M, random_state=0)
    pilot = max(0.0, float((with_pilot - one_pass)[1] / np.median(in_memory[:, 1])))
    return {
        "seconds_a_million_rows": float(1e6 * np.median(in_memory[:, 0])),
        "wall": float(wall),
        "cpu": float(cpu),
        "pilot_cpu": pilot,
    }


def timed(data: Any, **options: Any) -> np.ndarray:
    """Seconds a row, and seconds of all threads."""
    began = np.array([time.perf_counter(), time.process_time()])
    count = ckm.sketch(data, **options).count
    return (np.array([time.perf_counter(), time.process_time()]) - began) / count


def in_a_process_of_its_own(what: str, folder: Path, rounds: int) -> dict[str, Any]:
    command = [
        sys.executable,
        __file__,
        "--measure",
        what,
        "--folder",
        str(folder),
        "--rounds",
        str(rounds),
    ]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--quick",
        action="store_true",
        help="fewer rows, to see that it works; its figures mean little",
    )
    parser.add_argument(
        "--rows",
        type=float,
        help="as many rows as the larger set has (default: 1e7, quick: 1e6); a tenth in the smaller",
    )
    parser.add_argument(
        "--rounds", type=int, default=ROUNDS, help="how often each is timed (default: %(default)s)"
    )
    parser.add_argument("--measure", choices=["memory", "speed"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure == "memory":
        print(json.dumps(measure_memory(arguments.folder)))
    elif arguments.measure == "speed":
        print(json.dumps(measure_speed(arguments.folder, arguments.rounds)))
    else:
        compare(
            int(arguments.rows or (1e6 if arguments.quick else 1e7)),
            arguments.rounds,
            arguments.quick,
        )


def compare(rows: int, rounds: int, quick: bool) -> None:
    from common import Target, report, show

    results = []
    for count in (rows // 10, rows):
        with tempfile.TemporaryDirectory(prefix="ckm-sources-") as folder:
            write_files(Path(folder), count)
            n_bytes = sum(path.stat().st_size for path in Path(folder).iterdir())
            # which compiles, if need be
            found = {"bytes": n_bytes, **in_a_process_of_its_own("speed", Path(folder), rounds)}
            found |= in_a_process_of_its_own("memory", Path(folder), rounds)
        results.append(found)
    show(
        f"Sketching Parquet, {N_COLUMNS} columns of float32, m = {M}; rows a second beside those of an array in memory",
        [
            "rows",
            "peak MB",
            "before MB",
            "files / memory",
            "... in all threads' time",
            "pilot / pass in memory",
        ],
        [
            [found[name] for name in ("rows", "peak_mb", "before_mb", "wall", "cpu", "pilot_cpu")]
            for found in results
        ],
    )
    small, large = results
    of = f"{large['rows']:.0e} rows"
    targets = [
        Target(f"peak memory of the process, MB, {of}", LIMIT_MB, large["peak_mb"], at_most=True),
        Target(
            "peak memory / that at a tenth of the rows",
            CONSTANT,
            large["peak_mb"] / small["peak_mb"],
            at_most=True,
        ),
        Target(f"rows a second from files / from memory, {of}", SHARE, large["wall"]),
        Target("... in the time of all threads", SHARE, large["cpu"]),
    ]
    name = "sources" if rows <= 1e7 else f"sources-{rows:.0e}".replace("+0", "").replace("+", "")
    report(
        name,
        quick,
        {"m": M, "columns": N_COLUMNS, "group_rows": GROUP_ROWS, "rounds": rounds},
        results,
        targets,
    )


if __name__ == "__main__":
    main()
