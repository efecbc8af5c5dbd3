"""The null of two private releases, against releases drawn from one distribution."""

from types import SimpleNamespace

import numpy as np

from ckm._analysis.explanation import Explanation
from ckm._analysis.feature_covariance import mixture_covariance, mixture_features
from ckm._analysis.two_samples import Null, Pair

N = 2000
# Standard deviations of the noise on sums and on the number of rows, in rows.
SUMS = 60.0
COUNT = 80.0
M = 60
REPEATS = 400


def test_p_values_of_releases_are_uniform_under_the_null():
    rng = np.random.default_rng(0)
    omega = 0.4 * rng.standard_normal((M, 2))
    mixture = np.array([0.3, 0.7]), rng.normal(size=(2, 2)), np.full((2, 2), 0.5)
    psi = mixture_features(omega, *mixture)
    root = np.linalg.cholesky(mixture_covariance(omega, *mixture).matrix + 1e-9 * np.eye(2 * M))
    explanation = Explanation(*mixture, 0.0)
    turns = SimpleNamespace(turns=omega.T / (2 * np.pi))

    def release():
        features = psi + root @ rng.standard_normal(2 * M) / np.sqrt(N)
        size = N + COUNT * rng.standard_normal()
        z = (N * features + SUMS * rng.standard_normal(2 * M)) / size
        return z[:M] + 1j * z[M:], size

    p_values = []
    for _ in range(REPEATS):
        (z_a, size_a), (z_b, size_b) = release(), release()
        noise = [2 * (SUMS / size) ** 2 for size in (size_a, size_b)]
        relative = (COUNT / size_a) ** 2 + (COUNT / size_b) ** 2
        pair = Pair(z_a, z_b, size_a, size_b, *noise, relative)
        null = Null.of(pair, turns, explanation)
        p_values.append(float(null.law.tail(pair.joint_size * pair.squared_distance)))
    # Without the noise on the numbers of rows, the mean is 0.20, and 0.58 are below 0.1.
    assert abs(np.mean(p_values) - 0.5) < 0.05
    assert abs(np.mean(np.array(p_values) < 0.1) - 0.1) < 0.05
