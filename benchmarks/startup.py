"""How long starting takes: importing, `--help`, compiling for the first time, and starting with
compiled code in the cache.

Each figure is the best of several processes, in seconds of processor time, which other programs
hardly change, and by the clock; on an idle machine they are the same. A cold process starts with an
empty cache of compiled code, a warm one with the cache that a cold one filled. The cost of
compiling is the time of the first sketch, decoding and labelling minus that of the second.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.harness import Target, options, report, show

HELP = "import sys; sys.argv[0] = 'ckm'; from ckm._cli.app import main; main()"
STEPS = ("sketch", "decode", "label")
STARTS = ("cold", "warm")
PROCESSES = {
    "python": ["-c", "pass"],
    "import ckm": ["-c", "import ckm"],
    "ckm --help": ["-c", HELP, "--help"],
    "ckm fit --help": ["-c", HELP, "fit", "--help"],
    "import sklearn.cluster": ["-c", "import sklearn.cluster"],
    "import ckm.CompressiveKMeans": ["-c", "from ckm import CompressiveKMeans"],
}
# A process that sketches, decodes and labels, in one thread, and does the same again: what each
# step took, on the processor and on the clock, and which functions were compiled.
JOB = """
import json, sys, time
import numpy as np
import ckm
from numba.core import event
from ckm import CompressiveKMeans, decode, sketch
stack, compiled, times = [], {}, []
class Listener(event.Listener):
    def on_start(self, happening):
        stack.append(time.process_time())
    def on_end(self, happening):
        spent, function = time.process_time() - stack.pop(), happening.data["dispatcher"].py_func
        if not stack:
            name = f"{function.__module__}.{function.__name__}"
            compiled[name] = compiled.get(name, 0) + spent
event.register("numba:compile", Listener())
X = ckm.datasets.gaussian_mixture(2000, 3, 2, random_state=0).rows.astype(sys.argv[1])
now = lambda: np.array([time.process_time(), time.perf_counter()])
for turn in range(2):
    start = now()
    s = sketch(X, n_clusters=3, random_state=0, n_jobs=1)
    sketched = now()
    decode(s, 3, random_state=0, n_jobs=1)
    decoded = now()
    model = CompressiveKMeans.from_sketch(s, 3, random_state=0, n_jobs=1)
    begun = now()
    model.predict(X), model.score(X)
    times.append(np.array([sketched - start, decoded - sketched, now() - begun]))
print(json.dumps({"beyond": (times[0] - times[1]).tolist(), "compiled": compiled}))
"""


class Spent(NamedTuple):
    """Seconds on the processor and on the clock."""

    processor: float
    clock: float


def spent(arguments: list[str]) -> Spent:
    """Return what a process takes from start to end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Spent(
        after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        time.perf_counter() - began,
    )


def job(dtype: str, cache: str) -> dict[str, Any]:
    """Return what the first call of everything takes beyond the second, with this cache folder."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    done = subprocess.run(
        [sys.executable, "-c", JOB, dtype],
        check=True,
        env=environment,
        capture_output=True,
        text=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    steps = [Spent(*step) for step in found["beyond"]]
    return {
        **{name: step.processor for name, step in zip(STEPS, steps, strict=True)},
        "all": sum(step.processor for step in steps),
        "clock": sum(step.clock for step in steps),
        "compiled": found["compiled"],
    }


def cold_and_warm(dtype: str, rounds: int) -> dict[str, Any]:
    """Return the cheapest cold process, and the cheapest warm one."""
    cold = []
    warm = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as cache:
            cold.append(job(dtype, cache))
            size = sum(path.stat().st_size for path in Path(cache).rglob("*") if path.is_file())
            warm += [job(dtype, cache) for _ in range(2)]
    best = {
        name: min(runs, key=lambda run: run["all"])
        for name, runs in (("cold", cold), ("warm", warm))
    }
    return {
        "dtype": dtype,
        **best,
        "compiled_again": max(len(run["compiled"]) for run in warm),
        "cache_mb": size / 1e6,
    }


def main() -> None:
    arguments = options(
        "Measure startup: imports, help, the first compilation, and a warm start."
    ).parse_args()
    rounds = 1 if arguments.quick else 3
    taken = {
        name: min(spent(command) for _ in range(2 * rounds + 1))
        for name, command in PROCESSES.items()
    }
    show(
        "A process from start to end, in s",
        ["process", "processor", "clock"],
        [[name, *value] for name, value in taken.items()],
    )
    jobs = [cold_and_warm(dtype, rounds) for dtype in ("float64", "float32")]
    show(
        "What the first sketch, decoding and labelling take beyond the same again, in s",
        ["rows", "start", *STEPS, "all", "on the clock", "functions compiled"],
        [
            [
                f["dtype"],
                start,
                *(f[start][k] for k in (*STEPS, "all", "clock")),
                len(f[start]["compiled"]),
            ]
            for f in jobs
            for start in STARTS
        ],
    )
    compiled = sorted(jobs[0]["cold"]["compiled"].items(), key=lambda item: -item[1])
    show("Compiled for float64 rows, in s", ["function", "processor"], compiled)
    quick_ones = ("import ckm", "ckm --help", "ckm fit --help")
    ratio = taken["import sklearn.cluster"].processor / taken["import ckm"].processor
    targets = [
        *(Target(f"{name}, s", 0.5, taken[name].processor, at_most=True) for name in quick_ones),
        Target("import sklearn.cluster / import ckm", 1, ratio),
        *(
            Target(
                f"first-ever compilation, {f['dtype']} rows, s", 8, f["cold"]["all"], at_most=True
            )
            for f in jobs
        ),
        *(
            Target(
                f"warm start beyond imports, {f['dtype']} rows, s",
                0.5,
                f["warm"]["all"],
                at_most=True,
            )
            for f in jobs
        ),
        Target(
            "functions compiled in a warm start",
            0,
            max(f["compiled_again"] for f in jobs),
            at_most=True,
        ),
    ]
    results = {"processes": {name: value._asdict() for name, value in taken.items()}, "jobs": jobs}
    report("startup", arguments.quick, {"rounds": rounds}, results, targets)


if __name__ == "__main__":
    main()
