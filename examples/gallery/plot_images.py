"""
Images of digits
================

The digits of scikit-learn are 1797 images of 8 by 8 pixels, which are rows of 64 columns. Rows as
wide as this are projected to the directions in which they vary most, and centroids come back in
all 64 columns: each is the mean image of a cluster.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score

from ckm import CompressiveKMeans

CLUSTERS = 20

images, digits = load_digits(return_X_y=True)
model = CompressiveKMeans(CLUSTERS, random_state=0).fit(images)
projection = model.sketch_.frequencies.projection
print(f"{projection.n} columns, projected to {projection.d}")
print(f"adjusted Rand index to the digits: {adjusted_rand_score(digits, model.labels_):.2f}")

# %%
# Some digits are written in several ways, so there are more clusters than digits. Above each mean
# image is the digit that most of its images show, and how many of them.

main = [np.bincount(digits[model.labels_ == k], minlength=10) for k in range(CLUSTERS)]
order = sorted(range(CLUSTERS), key=lambda k: (main[k].argmax(), -main[k].max()))
figure, axes = plt.subplots(3, 7, figsize=(9, 4.6), layout="constrained")
for axis in axes.flat:
    axis.set_axis_off()
for axis, k in zip(axes.flat, order, strict=False):
    axis.imshow(model.cluster_centers_[k].reshape(8, 8), cmap="gray_r")
    axis.set_title(f"{main[k].argmax()}: {main[k].max() / main[k].sum():.0%}", fontsize=9)
figure.suptitle("Mean images of twenty clusters, and the digit that most of their images show")
plt.show()
