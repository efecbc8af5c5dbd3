"""Fit, predict and score as with any scikit-learn estimator."""

from ckm import CompressiveKMeans
from ckm.datasets import gaussian_mixture

X = gaussian_mixture(100_000, n_clusters=5, n_features=4, separation=10, random_state=0).rows

model = CompressiveKMeans(n_clusters=5, random_state=0).fit(X)
print("centroids:", model.cluster_centers_.round(2), sep="\n")
print("weights:", model.weights_.round(3))
print("SSE per row:", round(-model.score(X) / len(X), 3))
print("the model was fitted from", model.sketch_.nbytes, "bytes instead of", X.nbytes)
