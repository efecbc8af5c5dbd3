"""
Depots on a map
===============

Half a million addresses lie in towns of very different sizes, and along no grid. Where should
twelve depots be, so that the mean squared distance to the nearest one is small?

Addresses arrive as four regional lists. Each list is sketched where it is, and only the sketches
are put together.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial import Voronoi, voronoi_plot_2d

import ckm

TOWNS = 60
DEPOTS = 12
WIDTH = 300  # km
HEIGHT = 200  # km

rng = np.random.default_rng(7)
places = rng.uniform([0, 0], [WIDTH, HEIGHT], (TOWNS, 2))
sizes = 1 / np.arange(1, TOWNS + 1) ** 0.8
radii = 12 * np.sqrt(sizes)


def addresses(count: int) -> np.ndarray:
    """Return addresses: most of them in towns, one in ten anywhere."""
    town = rng.choice(TOWNS, count, p=sizes / sizes.sum())
    points = places[town] + radii[town, None] * rng.normal(size=(count, 2))
    anywhere = rng.random(count) < 0.1
    points[anywhere] = rng.uniform([0, 0], [WIDTH, HEIGHT], (anywhere.sum(), 2))
    return points[((points >= 0) & (points <= [WIDTH, HEIGHT])).all(axis=1)]


rows = addresses(500_000)
regions = [rows[(rows[:, 0] // (WIDTH / 4)).clip(max=3) == i] for i in range(4)]

# %%
# The frequencies have to suit the whole country, so they are chosen on a small sample of all
# addresses. ``like=`` passes them on to the regions.

design = ckm.sketch(rng.permutation(rows)[:5000], n_clusters=DEPOTS, random_state=0)
country = ckm.merge(ckm.sketch(region, like=design) for region in regions)
depots = ckm.decode(country, DEPOTS, random_state=0)
distance = np.sqrt(-depots.score(rows) / len(rows))
print(f"{country.count:,.0f} addresses, root-mean-square distance to a depot {distance:.1f} km")

# %%
# Lines are where two depots are equally far. A disc is as large as the share of the addresses of
# its depot.

figure, axes = plt.subplots(figsize=(8, 5.2), layout="constrained")
density = axes.hexbin(*rows.T, gridsize=90, bins="log", cmap="Blues", linewidths=0.1)
voronoi_plot_2d(
    Voronoi(depots.centroids), axes, show_points=False, show_vertices=False, line_colors="0.35"
)
axes.scatter(
    *depots.centroids.T,
    s=3000 * depots.weights,
    color="#d62728",
    edgecolor="white",
    alpha=0.85,
    label="depots",
)
axes.set(
    title="Twelve depots for half a million addresses",
    xlabel="east (km)",
    ylabel="north (km)",
    xlim=(0, WIDTH),
    ylim=(0, HEIGHT),
    aspect="equal",
)
figure.colorbar(density, label="addresses per hexagon", shrink=0.8)
plt.show()
