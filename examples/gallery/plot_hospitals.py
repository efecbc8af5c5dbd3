"""
Three hospitals and one map of patients
=======================================

Three hospitals may not share rows. Each publishes a private sketch, with so much noise that it
says hardly anything about any one patient, whoever reads it and whatever they know. Anyone can
merge the three files and cluster all patients.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
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


# %%
# The design comes from public knowledge alone: bounds of the columns, and the number of clusters.
# One unit of each column is half the width of its bounds.

design = ckm.public_frequencies((LOWEST, HIGHEST), n_clusters=3, columns=COLUMNS, standardize=True)

# %%
# In each hospital: sketch, add noise, publish. The exact sketch stays there, or is deleted. The
# ledger remembers what was spent, so that the same rows are not released again and again.

with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    for hospital in range(3):
        exact = ckm.sketch(patients(hospital), like=design)
        private = ckm.release(exact, EPSILON, DELTA, ledger=folder / f"spent-{hospital}.json")
        private.save(folder / f"{hospital}.private.ckm")
    published = [ckm.load(path) for path in sorted(folder.glob("*.private.ckm"))]

# %%
# Anywhere: nobody is a patient of two hospitals, so that epsilon stays what it is.

everyone = ckm.merge(published, population="disjoint")
found = ckm.decode(everyone, n_clusters=3, random_state=0)
budget = everyone.release.budget
print(f"About {everyone.count:.0f} patients, epsilon {budget.epsilon:g}, delta {budget.delta:g}")

# %%
# A check that nobody could make: k-means on the rows of all hospitals, in the same units. The noise
# is drawn anew each time, from the entropy of the system, and so the last digits differ.

rows = np.vstack([patients(hospital) for hospital in range(3)])
units = everyone.frequencies.units
exact_centroids = KMeans(3, n_init=3, random_state=0).fit(rows / units).cluster_centers_ * units
ratio = found.score(rows) / -(
    (((rows[:, None] - exact_centroids) / found.units) ** 2).sum(axis=2).min(axis=1).sum()
)
print(f"The SSE is {ratio:.3f} times that of k-means.")
assert ratio < 1.01

# %%
# The crosses are from the private files. The rows below them are in no file, and are drawn only to
# show that the crosses are where patients are.

figure, axes = plt.subplots(figsize=(7.5, 4.8), layout="constrained")
for hospital, colour in enumerate(("#2a6f97", "#d98032", "#3a7d44")):
    some = patients(hospital)[:700]
    axes.scatter(some[:, 0], some[:, 1], s=4, alpha=0.5, color=colour, label=f"hospital {hospital}")
axes.scatter(
    *found.centroids[:, :2].T,
    s=160,
    marker="X",
    color="black",
    edgecolor="white",
    label="private files",
)
axes.scatter(
    *exact_centroids[:, :2].T,
    s=420,
    facecolor="none",
    edgecolor="#d62728",
    linewidth=2,
    label="k-means on rows",
)
axes.set(title="Centroids from three private files, epsilon = 1")
axes.set(xlabel="age (years)", ylabel="systolic pressure (mmHg)")
for handle in axes.legend(loc="upper left").legend_handles:
    handle.set_sizes([40])
plt.show()
