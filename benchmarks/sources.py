"""Sketching Parquet files: peak memory of the process at any number of rows, and throughput beside
the in-memory kernel, in one run.

Rows are float32 in ten columns, in files of ten million rows with row groups of a million, written
to a temporary folder first (Snappy compression; no dictionaries, since hardly any value repeats).
Memory is measured in a process that only sketches the files, pilot included. Throughput is measured
in another process, which sketches an array in memory and one file by turns, with the same
frequencies and threads.
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
ROOT = Path(__file__).parents[1]
LIMIT_MB = 400
CONSTANT = 1.1
SHARE = 0.8


def write_files(folder: Path, rows: int) -> None:
    """Write a mixture of Gaussians; each file has its own means."""
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
    """Measure the memory of this process for one sketch of the files, and before opening them."""
    ckm.sketch(
        np.random.default_rng(0).normal(size=(1000, N_COLUMNS)).astype(np.float32),
        sketch_size=M,
        random_state=0,
        cells=0,
    )
    before = peak_memory()
    s = ckm.sketch(folder, sketch_size=M, random_state=0, cells=0)
    return {"rows": s.count, "before_mb": before, "peak_mb": peak_memory()}


def peak_memory() -> float:
    """Return the peak of this process so far, in MB.

    On Linux /proc has the process's own peak; `getrusage` starts at that of the parent.
    """
    status = Path("/proc/self/status")
    if status.exists():
        return float(status.read_text().split("VmHWM:")[1].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
        2**20 if sys.platform == "darwin" else 1024
    )


def measure_speed(folder: Path, rounds: int) -> dict[str, float]:
    """Measure rows per second of one file at a time relative to an array in memory just before: the
    median of these ratios.

    `cpu` counts the seconds of all threads. On an idle machine both are the same; on a shared one
    the latter shows the cost of reading. The cost of a pilot, in the same units, is measured once.
    """
    X = np.random.default_rng(0).standard_normal((MEMORY_ROWS, N_COLUMNS), np.float32)
    f = ckm.sketch(X, sketch_size=M, random_state=0, cells=0).frequencies
    turns = [
        (timed(X, like=f), timed(file, like=f))
        for _ in range(rounds)
        for file in sorted(folder.glob("*.parquet"))
    ]
    in_memory = np.array([memory for memory, _ in turns])
    from_files = np.array([files for _, files in turns])
    wall, cpu = np.median(in_memory / from_files, axis=0)
    one_pass = timed(folder, like=f)
    with_pilot = timed(folder, sketch_size=M, random_state=0)
    pilot = max(0.0, float((with_pilot - one_pass)[1] / np.median(in_memory[:, 1])))
    return {
        "seconds_a_million_rows": float(1e6 * np.median(in_memory[:, 0])),
        "wall": float(wall),
        "cpu": float(cpu),
        "pilot_cpu": pilot,
    }


def timed(data: Any, **options: Any) -> np.ndarray:
    """Return seconds per row, by the clock and of all threads."""
    began = np.array([time.perf_counter(), time.process_time()])
    count = ckm.sketch(data, **options, cells=0).count
    return (np.array([time.perf_counter(), time.process_time()]) - began) / count


def in_own_process(what: str, folder: Path, rounds: int) -> dict[str, Any]:
    command = [
        sys.executable,
        "-m",
        "benchmarks.sources",
        "--measure",
        what,
        "--folder",
        str(folder),
        "--rounds",
        str(rounds),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--quick",
        action="store_true",
        help="fewer rows, which shows that the script works; its figures mean little",
    )
    parser.add_argument(
        "--rows",
        type=float,
        help="rows of the larger set (default: 1e7, quick: 1e6); the smaller has a tenth",
    )
    parser.add_argument(
        "--rounds",
        type=int,
        default=ROUNDS,
        help="how often each file is timed (default: %(default)s)",
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
    # Imported here, since the memory of the measured processes must not include it.
    from benchmarks.harness import Target, report, show

    results = []
    for count in (rows // 10, rows):
        with tempfile.TemporaryDirectory(prefix="ckm-sources-") as folder:
            write_files(Path(folder), count)
            n_bytes = sum(path.stat().st_size for path in Path(folder).iterdir())
            # The first process compiles, if needed, so that the second does not.
            found = {"bytes": n_bytes, **in_own_process("speed", Path(folder), rounds)}
            found |= in_own_process("memory", Path(folder), rounds)
        results.append(found)
    show(
        f"Sketching Parquet, {N_COLUMNS} columns of float32, m = {M}; rows per second relative to "
        "an array in memory",
        [
            "rows",
            "peak MB",
            "before MB",
            "files / memory",
            "... in CPU time",
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
        Target(f"rows per second from files / from memory, {of}", SHARE, large["wall"]),
        Target("... in CPU time", SHARE, large["cpu"]),
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
