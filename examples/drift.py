"""A stream that drifts: keep a sketch per hour, decode a sliding window, or let the past decay. And
one that changes at once: a monitor says when, next to the detectors of river if it is installed.

Draws drift.png and monitor.png.
"""

import tempfile
import warnings
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import ckm

try:
    from river import drift
except ImportError:
    drift = None

HOURS = 24
ROWS = 4000
WINDOW = 4
EVERY = 4
K = 3
rng = np.random.default_rng(0)
# The rows of many hours lie on a circle, and decoding says that three clusters are too few for it.
warnings.simplefilter("ignore", ckm.errors.ClustersWarning)


def means(hour: int) -> np.ndarray:
    """Return the means of three clusters that move around a circle, once in two days."""
    angles = 2 * np.pi * (np.arange(K) / K + hour / 48)
    return 10 * np.stack([np.cos(angles), np.sin(angles)], axis=1)


def arrive(hour: int) -> np.ndarray:
    """Return the rows of one hour."""
    return means(hour)[rng.integers(K, size=ROWS)] + rng.normal(size=(ROWS, 2))


def miss(sketch: ckm.Sketch, hour: int) -> float:
    """Return the mean distance from the true means to the nearest decoded centroid."""
    found = ckm.decode(sketch, K, random_state=0).centroids
    return float(np.linalg.norm(means(hour)[:, None] - found, axis=2).min(axis=1).mean())


# Frequencies for the whole stream: the circle of the means (spread), clusters of variance one.
frequencies = ckm.draw_frequencies(60, 2, scale=1.0, spread=50.0, seed=0)
hours: list[ckm.Sketch] = []
everything = ckm.Sketch.empty(frequencies)
window = ckm.Sketch.empty(frequencies)
decayed = ckm.Sketch.empty(frequencies)
misses = {
    "everything so far": [],
    f"the last {WINDOW} hours": [],
    "decaying by a third per hour": [],
}
for hour in range(HOURS):
    hours.append(ckm.sketch(arrive(hour), like=frequencies))  # only the sketch is kept
    everything = everything + hours[-1]
    window = window + hours[-1]
    if hour >= WINDOW:
        window = window - hours[-1 - WINDOW]  # removes that hour exactly
    decayed = decayed.scaled(2 / 3) + hours[-1]
    if hour % EVERY == EVERY - 1:
        for name, sketch in zip(misses, (everything, window, decayed), strict=True):
            misses[name].append(miss(sketch, hour))

for name, values in misses.items():
    print(f"{name:26}: centroids miss the present means by {np.mean(values):.2f} on average")

figure = Figure(figsize=(8, 4), layout="constrained")
axes = figure.add_subplot(xlabel="hour", ylabel="distance from present means to centroids")
for name, values in misses.items():
    axes.plot(range(EVERY - 1, HOURS, EVERY), values, marker="o", label=name)
axes.legend(frameon=False)
path = Path(tempfile.mkdtemp()) / "drift.png"
figure.savefig(path, dpi=120)
print(f"Drawn in {path}.")

# One of ten clusters moves by a deviation after 15,000 rows: no column changes much.
CHANGE = 15_000
rows, labels, _ = ckm.datasets.gaussian_mixture(30_000, 10, 10, random_state=0)
rows[CHANGE:][labels[CHANGE:] == 0, 0] += 1.0
monitor = ckm.Monitor(random_state=0)  # a false alarm in a million rows, on average
for start in range(0, len(rows), 100):
    status = monitor.update(rows[start : start + 100])
    if status.alarm:
        break
print(status)
change = status.changes[0]
print(ckm.compare(change.before, change.after))
monitor.plot(path.with_name("monitor.png"))
print(f"Drawn in {path.with_name('monitor.png')}.")


def alarms_of(detector: type) -> list[int]:
    """Return the rows at which detectors of single columns raise alarms."""
    columns = [detector() for _ in range(rows.shape[1])]
    found = []
    for i, row in enumerate(rows):
        for column, value in zip(columns, row, strict=True):
            column.update(float(value))
            if column.drift_detected:
                found.append(i)
    return found


for name in ("ADWIN", "PageHinkley"):
    if drift is None:
        print(f"river's {name} is left out; pip install river shows it.")
        continue
    alarms = np.array(alarms_of(getattr(drift, name)))
    late = alarms[alarms >= CHANGE]
    when = f"{late[0] - CHANGE:,} rows after the change" if len(late) else "never after the change"
    print(f"river's {name}, one per column: {(alarms < CHANGE).sum()} false alarms, first {when}")
