"""Decoding without cells, now and in version 0.1.0: seconds and SSE on the real data sets.

The source of the earlier version is taken from this repository's history (--ref). Sketches are made
once and saved; a process of each version loads them and decodes them in turn, with as many threads.
SSEs are relative to the baseline of k-means that `quality.py` uses.
"""

import argparse
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

import ckm
from benchmarks.baselines import baseline, sse
from benchmarks.data import DataSet, Unavailable, data_sets
from benchmarks.harness import ROOT, Target, largest, mnist_option, options, report, show
from benchmarks.mnist import name_source

# The last commit of version 0.1.0 before the decoder was rewritten.
REFERENCE = "7ea2a6d"
TARGET = 1 / 8
THREADS = 2

# What each version runs: a line in is a file, K and a seed, a line out is the seconds and a file.
_WORKER = """
import json, sys, time
import numpy as np
import ckm
for line in sys.stdin:
    path, n_clusters, seed, threads = json.loads(line)
    sketch = ckm.load(path)
    start = time.perf_counter()
    found = ckm.decode(sketch, n_clusters, random_state=seed, n_jobs=threads)
    seconds = time.perf_counter() - start
    np.save(path + ".npy", found.centroids)
    print(json.dumps(seconds), flush=True)
"""


class Version:
    """A process that decodes with the source in a folder."""

    def __init__(self, source: Path, cache: Path) -> None:
        environment = os.environ | {
            "PYTHONPATH": str(source),
            "NUMBA_CACHE_DIR": str(cache),
            "PYTHONWARNINGS": "ignore",
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        self._process = subprocess.Popen(
            [sys.executable, "-c", _WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=cache,
        )

    def decode(self, path: Path, n_clusters: int, seed: int) -> tuple[float, np.ndarray]:
        """Return seconds and centroids."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps([str(path), n_clusters, seed, THREADS]) + "\n")
        stdin.flush()
        line = stdout.readline()
        if not line:
            raise RuntimeError("A version of ckm ended while it decoded.")
        return float(json.loads(line)), np.load(f"{path}.npy")

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def _earlier_source(ref: str, folder: Path) -> Path:
    """Unpack `src` of a commit into a folder; return where it is."""
    archive = subprocess.run(
        ["git", "archive", ref, "src"], cwd=ROOT, check=True, capture_output=True
    ).stdout
    with tarfile.open(fileobj=BytesIO(archive)) as packed:
        packed.extractall(folder, filter="data")
    _let_import(folder / "src" / "ckm" / "fused.py")
    return folder / "src"


def _let_import(module: Path) -> None:
    """Keep a coefficient that comes out as exactly zero on some processors, which `convert` drops:
    version 0.1.0 cannot be imported there. Nothing else of it changes.
    """
    if module.exists():
        dropped = "return tuple(float(c) for c in fit.convert(kind=np.polynomial.Polynomial).coef)"
        kept = "coef = fit.convert(kind=np.polynomial.Polynomial).coef\n    "
        kept += "return tuple(np.pad(coef, (0, _TERMS - len(coef))).tolist())"
        module.write_text(module.read_text(encoding="utf-8").replace(dropped, kept), "utf-8")


def compare(
    sets: Sequence[DataSet], seeds: Sequence[int], ref: str, quick: bool
) -> dict[str, dict[str, list[float]]]:
    """Return seconds and relative SSEs of both versions on each set, seed by seed."""
    found: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sources = {"before": _earlier_source(ref, folder), "now": ROOT / "src"}
        versions = {}
        for version, source in sources.items():
            cache = folder / version
            cache.mkdir()
            versions[version] = Version(source, cache)
        try:
            for data_set in sets:
                found[data_set.name] = _compare_on(data_set, seeds, versions, folder, quick)
        finally:
            for process in versions.values():
                process.close()
    return found


def _compare_on(
    data_set: DataSet, seeds: Sequence[int], versions: dict[str, Version], folder: Path, quick: bool
) -> dict[str, list[float]]:
    X, n_clusters = data_set.load(seeds[0], quick)
    best = baseline(data_set.key(seeds[0]), X, n_clusters, quick)
    runs: dict[str, list[float]] = {
        f"{what}_{version}": [] for version in versions for what in ("seconds", "relative_sse")
    }
    for seed in seeds:
        path = folder / f"{data_set.name}-{seed}.ckm"
        # Version 0.1.0 knows neither cells nor projections.
        sketch = ckm.sketch(X, n_clusters=n_clusters, random_state=seed, cells=0, projection=None)
        sketch.save(path)
        for version, process in versions.items():
            process.decode(path, n_clusters, seed)  # loads compiled code
            seconds, centroids = process.decode(path, n_clusters, seed)
            runs[f"seconds_{version}"].append(seconds)
            runs[f"relative_sse_{version}"].append(sse(X, centroids) / best)
    return runs


def _targets(found: dict[str, dict[str, list[float]]]) -> list[Target]:
    ratios = {
        name: np.median(np.divide(runs["seconds_now"], runs["seconds_before"]))
        for name, runs in found.items()
    }
    return [largest("decoding time now / before, median of the seeds", TARGET, ratios)]


def main(arguments: Sequence[str] | None = None) -> None:
    parser: argparse.ArgumentParser = options(str(__doc__), 200)
    parser.add_argument("--ref", default=REFERENCE, help="the earlier commit (%(default)s)")
    parser.add_argument("--count", type=int, default=3, help="number of seeds (%(default)s)")
    mnist_option(parser)
    given = parser.parse_args(arguments)
    name_source(given.mnist)
    seeds = range(given.seeds, given.seeds + (1 if given.quick else given.count))
    sets = []
    for data_set in data_sets(["real"], given.quick):
        try:
            data_set.load(seeds[0], given.quick)
            sets.append(data_set)
        except Unavailable as error:
            show(f"{data_set.name} is left out", ["why"], [[str(error)]])
    found = compare(sets, seeds, given.ref, given.quick)

    def median(runs: dict[str, Any], what: str) -> float:
        return float(np.median(runs[what]))

    show(
        f"Decoding without cells, {THREADS} threads, medians of {len(seeds)} seeds",
        ["data", "seconds before", "now", "now / before", "SSE before", "SSE now"],
        [
            [
                name,
                f"{median(runs, 'seconds_before'):.3f}",
                f"{median(runs, 'seconds_now'):.3f}",
                f"1 / {median(runs, 'seconds_before') / median(runs, 'seconds_now'):.1f}",
                f"{median(runs, 'relative_sse_before'):.4f}",
                f"{median(runs, 'relative_sse_now'):.4f}",
            ]
            for name, runs in found.items()
        ],
    )
    settings = {"ref": given.ref, "threads": THREADS, "seeds": list(seeds)}
    report("versions", given.quick, settings, found, _targets(found))


if __name__ == "__main__":
    main()
