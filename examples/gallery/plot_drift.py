"""
A stream that drifts
====================

A sketch is a sum over rows, so that old rows can be subtracted, or made to count less. Three ways
to keep up with a stream whose clusters move, and :class:`ckm.Monitor`, which says when a stream
changed.
"""

import matplotlib.pyplot as plt
import numpy as np

import ckm

HOURS = 24
ROWS = 4000
WINDOW = 4
K = 3
rng = np.random.default_rng(0)


def means(hour: int) -> np.ndarray:
    """Return the means of three clusters that move around a circle, once in two days."""
    angles = 2 * np.pi * (np.arange(K) / K + hour / 48)
    return 10 * np.stack([np.cos(angles), np.sin(angles)], axis=1)


def arrive(hour: int) -> np.ndarray:
    """Return the rows of one hour."""
    return means(hour)[rng.integers(K, size=ROWS)] + rng.normal(size=(ROWS, 2))


# %%
# One sketch per hour is kept, and none of the rows. The frequencies are drawn for the whole stream
# before it begins: the circle of the means, and clusters of variance one.

frequencies = ckm.draw_frequencies(60, 2, scale=1.0, spread=50.0, seed=0)
hours: list[ckm.Sketch] = []
everything = ckm.Sketch.empty(frequencies)
window = ckm.Sketch.empty(frequencies)
decayed = ckm.Sketch.empty(frequencies)
for hour in range(HOURS):
    hours.append(ckm.sketch(arrive(hour), like=frequencies))
    everything = everything + hours[-1]
    window = window + hours[-1]
    if hour >= WINDOW:
        window = window - hours[-1 - WINDOW]  # removes that hour exactly
    decayed = decayed.scaled(2 / 3) + hours[-1]

# %%
# At the end of the day the three are decoded. A sketch of the whole day has three arcs, and its
# centroids are in their middle: right for the day, late for the last hour.

found = {}
for name, sketch in (
    ("all of the day", everything),
    (f"the last {WINDOW} hours", window),
    ("decaying by a third per hour", decayed),
):
    found[name] = ckm.decode(sketch, K, random_state=0)
    gaps = np.linalg.norm(means(HOURS - 1)[:, None] - found[name].centroids, axis=2)
    miss = gaps.min(axis=1).mean()
    print(f"{name:28}: centroids are {miss:.2f} from the means of the last hour")

figure, axes = plt.subplots(figsize=(6, 5.4), layout="constrained")
for k in range(K):
    path = np.array([means(hour)[k] for hour in range(HOURS)])
    axes.plot(*path.T, color="0.8", linewidth=9, solid_capstyle="round", zorder=0)
axes.scatter(*arrive(HOURS - 1)[:600].T, s=3, color="0.55", label="rows of the last hour")
for (name, solution), marker, colour in zip(
    found.items(), "sDo", ("#d98032", "#2a6f97", "#3a7d44"), strict=True
):
    axes.scatter(*solution.centroids.T, s=70, marker=marker, color=colour, label=name)
axes.set(title="Centroids at the end of a day of drift", aspect="equal", xlabel="x", ylabel="y")
axes.legend(loc="center", fontsize=9)
plt.show()

# %%
# When did it change?
# -------------------
# Now one of ten clusters moves by a standard deviation after 15,000 rows; no column changes much.
# The monitor has no window to choose, and raises a false alarm once in a million rows on average.

CHANGE = 15_000
rows, labels, _ = ckm.datasets.gaussian_mixture(20_000, 10, 10, random_state=0)
rows[CHANGE:][labels[CHANGE:] == 0, 0] += 1.0
monitor = ckm.Monitor(random_state=0)
changes: list[ckm.Change] = []
for start in range(0, len(rows), 500):
    changes += monitor.update(rows[start : start + 500]).changes
    if changes:
        break
print(changes[0])

# %%
# A change has two sketches, before and after, and these say what happened.

print(ckm.compare(changes[0].before, changes[0].after))

# %%
# The statistic of each block of rows, as a multiple of the threshold for an alarm:

watched, statistic = monitor.history.T
figure, axes = plt.subplots(figsize=(8, 3.2), layout="constrained")
axes.plot(watched, statistic, color="#2a6f97")
axes.axhline(1, color="#d62728", linestyle="--", label="alarm")
axes.axvline(CHANGE, color="0.5", linestyle=":", label="the cluster moves")
axes.set(title="The statistic of the monitor", xlabel="rows", ylabel="relative to the threshold")
axes.set_ylim(0, 1.15)
axes.legend(frameon=False)
plt.show()
