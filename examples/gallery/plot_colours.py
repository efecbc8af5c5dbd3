"""
The colours of a photograph
===========================

A photograph of 640 by 427 pixels has 273,280 rows of three columns: red, green and blue. Sixteen
centroids are a palette, and the weights say how much of the picture each colour covers.

The centroids come from a sketch of the pixels. The pixels are read once more only to paint each
of them with its nearest colour.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_sample_image

import ckm

COLOURS = 16

photograph = load_sample_image("china.jpg") / 255
pixels = photograph.reshape(-1, 3)

sketch = ckm.sketch(pixels, n_clusters=COLOURS, random_state=0)
palette = ckm.decode(sketch, COLOURS, random_state=0)
print(f"{pixels.nbytes:,} bytes of pixels, a sketch of {sketch.nbytes:,} bytes")

# %%
# How good is the palette? The reference is k-means, run once on all pixels; it reads them some
# dozens of times. Both are measured by the mean squared distance of a pixel to its colour.

reference = KMeans(COLOURS, n_init=1, random_state=0).fit(pixels)
error = -palette.score(pixels) / len(pixels)
ratio = error / (reference.inertia_ / len(pixels))
print(f"root-mean-square error {np.sqrt(error):.4f}, {ratio:.4f} times the SSE of KMeans")

# %%
# The palette is a bar below the pictures. Colours are as wide as their share of the pixels.

painted = np.clip(palette.centroids, 0, 1)[palette.predict(pixels)].reshape(photograph.shape)

figure, axes = plt.subplot_mosaic(
    [["before", "after"], ["palette", "palette"]],
    figsize=(9, 4),
    height_ratios=[6, 1],
    layout="constrained",
)
axes["before"].imshow(photograph)
axes["before"].set_title("The photograph")
axes["after"].imshow(painted)
axes["after"].set_title(f"The same with {COLOURS} colours")
left = 0.0
for colour, share in zip(np.clip(palette.centroids, 0, 1), palette.weights, strict=True):
    axes["palette"].barh(0, share, left=left, height=1, color=colour)
    left += share
axes["palette"].set_xlim(0, 1)
axes["palette"].set_title("The palette: the share of the pixels of each colour", fontsize=10)
for each in axes.values():
    each.set_axis_off()
plt.show()
