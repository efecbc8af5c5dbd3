"""Two samples compared by their rows: permutation tests of the exact kernel, for `compare.py`."""

from collections.abc import Callable

import numpy as np
from scipy.special import gamma, jv

import ckm

PERMUTATIONS = 199


def law_kernel(frequencies: ckm.Frequencies) -> Callable[[np.ndarray], np.ndarray]:
    """Return the kernel that the frequencies are random features of, of squared distances.

    Directions are uniform, so that the mean of cos(omega . x) over them is a Bessel function of
    |omega| |x|; over radii it is averaged.
    """
    n = frequencies.n
    many = ckm.draw_frequencies(
        200_000,
        n,
        scale=frequencies.scale,
        distribution=frequencies.distribution,
        spread=frequencies.spread,
    )
    radii = np.linalg.norm(many.omega, axis=1)
    radii = np.quantile(radii, (np.arange(200) + 0.5) / 200)
    places = np.linspace(0, 1, 1501)

    def kernel(squares: np.ndarray) -> np.ndarray:
        distances = np.sqrt(squares)
        table = places * distances.max()
        x = np.maximum(np.outer(table, radii), 1e-8)
        waves = gamma(n / 2) * (2 / x) ** (n / 2 - 1) * jv(n / 2 - 1, x)
        return np.interp(distances, table, waves.mean(axis=1))

    return kernel


def squared_distances(X: np.ndarray) -> np.ndarray:
    """Return the squared distances of all rows."""
    products = X @ X.T
    squares = np.diag(products)
    return np.maximum(squares[:, None] + squares - 2 * products, 0.0)


def permutation_p_value(kernel: np.ndarray, size_a: int, rng: np.random.Generator) -> float:
    """Return the p-value of the squared maximum mean discrepancy, by permutation of the rows."""
    N = len(kernel)
    signs = np.full(N, -1 / (N - size_a))
    signs[:size_a] = 1 / size_a
    all_signs = np.stack([signs, *(rng.permutation(signs) for _ in range(PERMUTATIONS))], axis=1)
    values = np.einsum("ij,ij->j", all_signs, kernel @ all_signs)
    return float((values >= values[0] - 1e-12).mean())
