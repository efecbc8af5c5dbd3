"""What MNIST's spectral features can give: SSE / N and adjusted Rand index of the means of the true
digits as centroids, and of Lloyd's algorithm from there.
"""

import argparse

import numpy as np
from sklearn.cluster import KMeans

from benchmarks import mnist
from benchmarks.harness import mnist_option, show
from experiments.methods import judge
from experiments.paper import SIZES

K = 10


def measure(n_images: int) -> list[str]:
    """Return a row of the table."""
    X, classes = mnist.features(n_images)
    means = np.stack([X[classes == digit].mean(axis=0) for digit in range(K)])
    settled = KMeans(K, init=means, n_init=1).fit(X).cluster_centers_
    judged = [judge(X, C, classes) for C in (means, settled)]
    cells = [text for j in judged for text in (f"{j.sse / len(X):.4f}", f"{j.ari:.3f}")]
    return [f"{n_images:,}", *cells]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    mnist_option(parser)
    parser.add_argument("--largest", type=float, default=float("inf"), metavar="N")
    chosen = parser.parse_args()
    mnist.name_source(chosen.mnist)
    if mnist.available():
        show(
            "The means of the true digits as centroids",
            ["N", "SSE / N", "ARI", "SSE / N after Lloyd", "ARI after Lloyd"],
            [measure(size) for size in SIZES if size <= chosen.largest],
        )


if __name__ == "__main__":
    main()
