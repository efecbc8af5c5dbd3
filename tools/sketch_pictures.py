"""Draw the pictures of docs/what-a-sketch-is.md: ``python tools/sketch_pictures.py``.

The first shows what docs/_static/sketch.js computes as a reader moves its slider: for some numbers
of frequencies, the density of largest entropy that has the sketch of the rows, and its centroids.
"""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.cluster import KMeans

IMAGES = Path(__file__).parents[1] / "docs" / "images"
MEANS = np.array([-4.2, 0.8, 4.6])
DEVIATIONS = np.array([0.75, 0.6, 0.9])
SHARES = [0.45, 0.3, 0.25]
ROWS = 1500
GRID = np.linspace(-8, 8, 161)
SHOWN = (1, 4, 7)  # frequencies
ROW_COLOUR = "#a9b4c0"
FOUND_COLOUR = "#1f5f8b"
MARK_COLOUR = "#b3261e"

Array = NDArray[np.float64]


def make_rows(seed: int, shares: list[float]) -> Array:
    """Return rows on a line, in three clusters."""
    rng = np.random.default_rng(seed)
    kinds = rng.choice(3, ROWS, p=shares)
    return np.asarray(MEANS[kinds] + DEVIATIONS[kinds] * rng.normal(size=ROWS))


def frequencies(m: int) -> Array:
    """Return the first m frequencies, spread over all and denser near zero."""
    places = (0.12 + np.arange(1, m + 1) * (np.sqrt(5) - 1) / 2) % 1
    return np.asarray(0.12 + 3.08 * places**1.6)


def features(x: Array, omega: Array) -> Array:
    """Return cosines and sines (len(x), 2 m): the parts of exp(-i omega x)."""
    phases = np.outer(x, omega)
    return np.hstack([np.cos(phases), -np.sin(phases)])


def recover(rows: Array, omega: Array) -> Array:
    """Return the probabilities of largest entropy on the grid whose sketch is that of the rows, up
    to the noise of sampling.
    """
    target = features(rows, omega).mean(axis=0)
    A = features(GRID, omega)
    noise = 0.5 / len(rows)

    def dual(coefficients: Array) -> tuple[float, Array]:
        exponent = A @ coefficients
        largest = exponent.max()
        p = np.exp(exponent - largest)
        total = p.sum()
        gradient = p @ A / total - target + noise * coefficients
        value = largest + np.log(total) - target @ coefficients
        return float(value + 0.5 * noise * coefficients @ coefficients), gradient

    found = minimize(dual, np.zeros(A.shape[1]), jac=True, method="L-BFGS-B").x
    p = np.exp(A @ found - (A @ found).max())
    return np.asarray(p / p.sum())


def draw_recovery(axes: Axes, rows: Array, m: int) -> None:
    """Draw rows, the density that m frequencies recover, and its centroids."""
    p = recover(rows, frequencies(m))
    model = KMeans(3, n_init=10, random_state=0).fit(GRID[:, None], sample_weight=p)
    reference = KMeans(3, n_init=10, random_state=0).fit(rows[:, None])
    ratio = -model.score(rows[:, None]) / reference.inertia_
    axes.hist(rows, 64, range=(-8, 8), density=True, color=ROW_COLOUR, label="rows")
    axes.plot(GRID, p / (GRID[1] - GRID[0]), color=FOUND_COLOUR, linewidth=2, label="recovered")
    axes.plot(
        model.cluster_centers_[:, 0],
        np.zeros(3),
        "^",
        color=MARK_COLOUR,
        markersize=10,
        clip_on=False,
        label="centroids",
    )
    axes.set_title(f"m = {m}: SSE {ratio:.2f} times k-means'", fontsize=11)
    axes.set(xlabel="x", yticks=[], ylim=(0, 0.27))


def draw_sums(axes: Axes, rows: Array, title: str) -> None:
    """Draw the sums of sines over rows at a few frequencies."""
    sums = np.sin(np.outer(rows, np.linspace(0.25, 2, 8))).sum(axis=0)
    axes.bar(np.arange(1, 9), sums, color=FOUND_COLOUR)
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_title(title, fontsize=11)
    axes.set(xlabel="frequency number")


def main() -> None:
    """Draw both pictures."""
    rows = make_rows(7, SHARES)
    figure = Figure(figsize=(9, 3), layout="constrained")
    panels = figure.subplots(1, len(SHOWN), sharey=True)
    for axes, m in zip(panels, SHOWN, strict=True):
        draw_recovery(axes, rows, m)
    panels[0].legend(frameon=False, fontsize=9)
    figure.savefig(IMAGES / "sketch.png", dpi=110)

    monday = make_rows(7, [0.7, 0.2, 0.1])
    tuesday = make_rows(8, [0.05, 0.2, 0.75])
    figure = Figure(figsize=(9, 2.8), layout="constrained")
    panels = figure.subplots(1, 3, sharey=True)
    for axes, part, title in zip(
        panels,
        (monday, tuesday, np.concatenate([monday, tuesday])),
        ("Monday", "+ Tuesday", "= both"),
        strict=True,
    ):
        draw_sums(axes, part, title)
    panels[0].set_ylabel("sum of sines")
    figure.savefig(IMAGES / "merging.png", dpi=110)


if __name__ == "__main__":
    main()
