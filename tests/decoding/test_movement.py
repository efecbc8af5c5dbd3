"""How far centroids move from seed to seed, as a solution says."""

import numpy as np
import pytest

import ckm


def decoded(X: np.ndarray, K: int, **options: object) -> ckm.Solution:
    sketch = ckm.sketch(X, n_clusters=K, random_state=0, **options)  # type: ignore[arg-type]
    return ckm.decode(sketch, K, random_state=0)


def test_clusters_that_are_there_hardly_move(clusters: np.ndarray) -> None:
    assert decoded(clusters, 3).seed_movement().max() < 0.01


def test_arbitrary_clusters_move() -> None:
    X = np.random.default_rng(0).normal(size=(5000, 3))
    found = decoded(X, 6)
    width = np.sqrt(-found.score(X) / len(X))
    movement = found.seed_movement()
    assert movement.shape == (6,)
    assert np.sqrt((movement**2).mean()) > 0.2 * width
    np.testing.assert_array_equal(movement, found.seed_movement())


def test_movements_are_in_the_units_of_the_solution() -> None:
    X = np.random.default_rng(0).random((5000, 2))
    plain = decoded(X, 6, standardize=True)
    scaled = decoded(X * [1.0, 1024.0], 6, standardize=True)
    np.testing.assert_allclose(scaled.seed_movement(), plain.seed_movement(), rtol=0.1)


def test_points_alone_do_not_tell(clusters: np.ndarray) -> None:
    sketch = ckm.sketch(clusters, n_clusters=3, random_state=0)
    found = ckm.decode(sketch, 3, decoder="clompr", random_state=0)
    with pytest.raises(ckm.errors.ParameterError, match="recovers points only"):
        found.seed_movement()
