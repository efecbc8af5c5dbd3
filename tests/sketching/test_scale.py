"""The scale sigma^2: it has the squared units of the data, and does not depend on the position,
order or repetition of rows.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ckm
from ckm._core.frequencies import Frequencies
from ckm._sketching.pilot import Pilot
from ckm._sketching.scale import decay_scale
from ckm.errors import DataError, ScaleWarning

# Phases are float32: rounding moves the moduli that sigma^2 is fitted to by a few 2**-24.
ROUNDING = 1e-6


def mixture(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 8))
    return rng.normal(size=(600, n)) + 4.0 * rng.integers(0, 3, size=(600, 1))


# One law for each rule: the variance within clusters, and the paper's.
LAWS = st.sampled_from(["multiscale", "adapted-radius"])


def scale_of(X: np.ndarray, seed: int = 0, law: str = "adapted-radius", **options: object) -> float:
    return ckm.sketch(
        X, n_clusters=3, random_state=seed, distribution=law, **options
    ).frequencies.scale


@settings(max_examples=25)
@given(seed=st.integers(0, 1000), exponent=st.floats(-6, 6), law=LAWS)
def test_scaling_the_data_scales_sigma2_by_the_square(seed: int, exponent: float, law: str) -> None:
    X = mixture(seed)
    s = 10.0**exponent
    assert scale_of(s * X, seed, law) == pytest.approx(s**2 * scale_of(X, seed, law), rel=ROUNDING)


@settings(max_examples=15)
@given(seed=st.integers(0, 1000), exponent=st.integers(-40, 40), law=LAWS)
def test_powers_of_two_scale_exactly(seed: int, exponent: int, law: str) -> None:
    X = mixture(seed)
    assert scale_of(2.0**exponent * X, seed, law) == 4.0**exponent * scale_of(X, seed, law)


@settings(max_examples=25)
@given(seed=st.integers(0, 1000), exponent=st.floats(0, 6), sign=st.sampled_from([-1, 1]), law=LAWS)
def test_translation_does_not_change_sigma2(
    seed: int, exponent: float, sign: int, law: str
) -> None:
    X = mixture(seed)
    assert scale_of(X + sign * 10.0**exponent * X.std(), seed, law) == pytest.approx(
        scale_of(X, seed, law), rel=ROUNDING
    )


@settings(max_examples=20)
@given(seed=st.integers(0, 1000), law=LAWS)
def test_order_and_repetition_do_not_matter(seed: int, law: str) -> None:
    X = mixture(seed)
    rng = np.random.default_rng(seed)
    times = rng.integers(0, 3, size=len(X))

    def drawn(rows: np.ndarray, weights: np.ndarray | None = None) -> Frequencies:
        return ckm.sketch(
            rows, n_clusters=3, random_state=seed, distribution=law, sample_weight=weights
        ).frequencies

    assert drawn(X[rng.permutation(len(X))]) == drawn(X)
    assert drawn(X, times) == drawn(np.repeat(X, times, axis=0))


@pytest.mark.parametrize("n", [1, 2, 10])
def test_the_scale_of_one_gaussian_is_its_variance(n: int) -> None:
    X = 3.0 * np.random.default_rng(n).normal(size=(5000, n))
    # Noise on |z| of order 5000**-1/2 = 0.014, upwards because each band keeps its largest modulus.
    assert scale_of(X) == pytest.approx(9.0, rel=0.1)


def clusters(K: int, widths: np.ndarray | float, n: int = 10) -> np.ndarray:
    """5000 rows of K clusters around means with unit variance, of the given standard deviations."""
    rng = np.random.default_rng(K)
    means = rng.normal(size=(K, n))
    labels = rng.integers(0, K, size=5000)
    noise = rng.normal(size=(5000, n))
    return means[labels] + np.broadcast_to(widths, K)[labels, None] * noise


def relative_scale(X: np.ndarray) -> float:
    """The scale of the paper's rule, over the mean variance of a column."""
    return scale_of(X) / X.var(axis=0).mean()


@pytest.mark.parametrize("K", [2, 3, 10, 30])
def test_the_scale_of_tight_clusters_is_that_of_the_distances_between_them(K: int) -> None:
    assert 0.1 < relative_scale(clusters(K, 1e-2)) < 1.2


@pytest.mark.parametrize("K", [2, 3, 10, 30])
def test_the_width_of_tight_clusters_does_not_matter(K: int) -> None:
    assert relative_scale(clusters(K, 1e-4)) == pytest.approx(
        relative_scale(clusters(K, 1e-2)), rel=0.02
    )


def test_clusters_of_very_different_widths_do_not_shrink_the_scale() -> None:
    assert 0.3 < relative_scale(clusters(10, np.geomspace(1e-3, 1, 10))) < 1.2


def test_the_scale_is_found_in_thousands_of_columns() -> None:
    rng = np.random.default_rng(0)
    pilot = Pilot(rng.normal(size=(500, 3000)), np.ones(500))
    # The variance of 500 rows along a direction deviates by 6 %.
    assert decay_scale(pilot, rng) == pytest.approx(1.0, rel=0.2)


@pytest.mark.parametrize("K", [5, 20])
def test_the_default_scale_is_the_variance_within_clusters(K: int) -> None:
    X = ckm.datasets.gaussian_mixture(5000, K, 10, separation=30, random_state=0).rows
    # A rough k-means may merge two clusters, whose distance then counts; frequencies at many scales
    # forgive a factor of four.
    assert 0.8 < ckm.sketch(X, n_clusters=K, random_state=0).frequencies.scale < 4


def test_a_few_distinct_rows_have_a_positive_scale() -> None:
    X = np.repeat(np.array([[0.0, 0.0], [1.0, 0.0], [5.0, 5.0]]), 20, axis=0)
    assert 0 < ckm.sketch(X, n_clusters=3, random_state=0).frequencies.scale <= X.var(axis=0).sum()


def test_more_clusters_make_a_smaller_scale() -> None:
    X = np.random.default_rng(0).normal(size=(20_000, 2))
    scales = [ckm.sketch(X, n_clusters=K, random_state=0).frequencies.scale for K in (2, 10, 50)]
    assert scales[0] > 3 * scales[1] > 9 * scales[2]


@pytest.mark.parametrize(
    "X", [np.ones((50, 2)), np.full((50, 2), 0.1), np.full((50, 1), 1e9 + 1 / 3), np.ones((1, 3))]
)
def test_rows_without_variance_have_no_scale(X: np.ndarray) -> None:
    with pytest.raises(DataError, match=r"(equal|one row).*scale="):
        scale_of(X)
    assert ckm.sketch(X, sketch_size=4, scale=2.0, random_state=0).count == len(X)


def test_rows_of_weight_zero_do_not_count() -> None:
    X = mixture(0)
    weights = np.ones(len(X))
    weights[::2] = 0
    spoilt = X.copy()
    spoilt[::2] = np.nan
    assert scale_of(spoilt, sample_weight=weights) == scale_of(X[1::2])


def test_without_rows_unit_variance_is_assumed_with_a_warning() -> None:
    with pytest.warns(ScaleWarning, match=r"unit variance.*scale="):
        f = ckm.sketch(np.empty((0, 3)), sketch_size=4, random_state=0).frequencies
    assert f.scale == 1.0
    assert np.array_equal(f.origin, np.zeros(3))
