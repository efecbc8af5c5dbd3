"""Three hospitals that may not share rows publish private sketches, and anyone can cluster all of
their patients.

The design comes from public knowledge alone. Each hospital adds noise to its own sketch, so that
its file says hardly anything about any one patient, whoever reads it and whatever they know.
"""

import tempfile
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans

import ckm

EPSILON = 1.0
DELTA = 1e-6
COLUMNS = ["age", "systolic", "bmi"]
# What is possible, not what was measured: these come from no patient.
LOWEST = [0, 60, 10]
HIGHEST = [110, 240, 60]


def patients(hospital: int) -> np.ndarray:
    """The rows of a hospital, which it shows nobody: three groups, mixed differently."""
    rng = np.random.default_rng(hospital)
    means = np.array([[28.0, 115, 23], [55, 150, 33], [78, 135, 25]])
    shares = [[0.6, 0.2, 0.2], [0.2, 0.5, 0.3], [0.3, 0.2, 0.5]][hospital]
    groups = rng.choice(3, size=20_000, p=shares)
    return means[groups] + rng.normal(size=(20_000, 3)) * [6, 8, 3]


folder = Path(tempfile.mkdtemp())
bounds = (LOWEST, HIGHEST)
# One unit of each column is half the width of its bounds.
ckm.public_frequencies(bounds, n_clusters=3, columns=COLUMNS, standardize=True).save(
    folder / "design.ckm"
)

# In each hospital: sketch, add noise, publish. The exact sketch stays there, or is deleted.
for hospital in range(3):
    exact = ckm.sketch(patients(hospital), like=folder / "design.ckm")
    private = ckm.release(exact, EPSILON, DELTA, ledger=folder / f"spent-{hospital}.json")
    private.save(folder / f"{hospital}.private.ckm")

# Anywhere: nobody is a patient of two hospitals, so that epsilon stays what it is.
published = [ckm.load(path) for path in sorted(folder.glob("*.private.ckm"))]
everyone = ckm.merge(published, population="disjoint")
found = ckm.decode(everyone, n_clusters=3, random_state=0)
budget = everyone.release.budget
print(f"About {everyone.count} patients, epsilon = {budget.epsilon:g}, delta = {budget.delta:g}")

# A check that nobody could make: k-means on the rows of all hospitals, in the same units.
rows = np.vstack([patients(hospital) for hospital in range(3)])
units = everyone.frequencies.units
exact_centroids = KMeans(3, n_init=3, random_state=0).fit(rows / units).cluster_centers_ * units


def by_age(centroids: np.ndarray) -> np.ndarray:
    """Centroids in order of the first column."""
    return centroids[np.argsort(centroids[:, 0])]


def sse(centroids: np.ndarray) -> float:
    """The sum of squared distances of all rows, in units of the design."""
    offsets = (rows[:, None] - centroids) / units
    return float((offsets**2).sum(axis=2).min(axis=1).sum())


print(f"{'':>9}{'from three private files':>33}{'k-means on all rows':>36}")
for name, private_column, exact_column in zip(
    COLUMNS, by_age(found.centroids).T, by_age(exact_centroids).T, strict=True
):
    numbers = [f"{value:11.2f}" for value in (*private_column, *exact_column)]
    print(f"{name:>9}{''.join(numbers[:3])}   {''.join(numbers[3:])}")
ratio = sse(found.centroids) / sse(exact_centroids)
print(f"The SSE is {ratio:.4f} times that of k-means.")
assert ratio < 1.01
