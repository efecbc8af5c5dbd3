"""The distributions of frequencies, and frequencies as a frozen value with a fingerprint."""

from dataclasses import FrozenInstanceError, replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from ckm import Frequencies, draw_frequencies
from ckm._core.laws import (
    DISTRIBUTIONS,
    adapted_radii,
    require_enough_frequencies,
    uniform_directions,
)
from ckm.errors import ParameterError

# Seeds are fixed: a correct sampler fails a test at this level for one seed in ten thousand.
LEVEL = 1e-4
DEVIATIONS = 4.0  # standard errors


@cache
def radius_law(power: int = 0, upper: float = np.inf) -> float:
    """Integral of R^power p(R) up to `upper`, p(R) proportional to sqrt(R^2 + R^4/4) exp(-R^2/2),
    by quadrature.
    """

    def density(r: float) -> float:
        return float(np.sqrt(r**2 + r**4 / 4) * np.exp(-(r**2) / 2))

    mass = integrate.quad(density, 0, np.inf)[0]
    return float(integrate.quad(lambda r: r**power * density(r), 0, upper)[0] / mass)


@pytest.fixture(scope="module")
def radii() -> np.ndarray:
    return adapted_radii(np.random.default_rng(7), 10**6)


@pytest.mark.parametrize(("power", "known"), [(1, 1.351), (2, 2.303)])
def test_moments_of_the_adapted_radius(radii: np.ndarray, power: int, known: float) -> None:
    expected = radius_law(power)
    error = np.sqrt((radius_law(2 * power) - expected**2) / len(radii))
    # The known values come from as many draws, rounded to three digits.
    assert abs(known - expected) <= error + 5e-4
    assert abs((radii**power).mean() - expected) <= DEVIATIONS * error


@pytest.mark.parametrize(("share", "known"), [(0.05, 0.351), (0.5, 1.279), (0.95, 2.600)])
def test_quantiles_of_the_adapted_radius(radii: np.ndarray, share: float, known: float) -> None:
    # The known quantile is rounded to 5e-4, where the density is at most 0.6.
    assert abs(radius_law(0, known) - share) <= 0.6 * 5e-4
    error = np.sqrt(share * (1 - share) / len(radii))
    assert abs((radii <= known).mean() - radius_law(0, known)) <= DEVIATIONS * error


def test_the_adapted_radius_follows_its_density_everywhere(radii: np.ndarray) -> None:
    grid = np.linspace(0, 6, 61)
    expected = np.array([radius_law(0, float(r)) for r in grid])
    gap = np.abs(np.searchsorted(np.sort(radii), grid) / len(radii) - expected).max()
    assert gap * np.sqrt(len(radii)) <= stats.kstwobign.isf(LEVEL)


@pytest.mark.parametrize(
    ("name", "n", "radius"),
    [
        ("folded-gaussian", 5, stats.halfnorm),
        ("folded-gaussian", 1, stats.halfnorm),
        ("gaussian", 5, stats.chi(5)),
        ("gaussian", 1, stats.chi(1)),
    ],
)
def test_radii_of_the_other_laws(name: str, n: int, radius: object) -> None:
    omega = DISTRIBUTIONS[name](np.random.default_rng(3), 100_000, n)
    assert stats.kstest(np.linalg.norm(omega, axis=1), radius.cdf).pvalue > LEVEL


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("n", [1, 2, 3, 10])
def test_directions_are_uniform_and_do_not_depend_on_the_radius(name: str, n: int) -> None:
    omega = DISTRIBUTIONS[name](np.random.default_rng(n), 100_000, n)
    assert omega.shape == (100_000, n)
    # In few dimensions, structured frequencies may be zero.
    omega = omega[(omega != 0).any(axis=1)]
    assert len(omega) >= 95_000
    radius = np.linalg.norm(omega, axis=1)
    directions = omega / radius[:, None]
    far = radius > np.median(radius)
    for phi in (directions, directions[far], directions[~far]):
        # A coordinate of a uniform direction has mean 0 and variance 1/n; products of two have
        # variance at most 1.
        error = 1 / np.sqrt(len(phi))
        largest_mean = DEVIATIONS * error / np.sqrt(n) * np.sqrt(1 + np.log(n))
        assert np.abs(phi.mean(axis=0)).max() <= largest_mean
        assert np.abs(phi.T @ phi / len(phi) - np.eye(n) / n).max() <= DEVIATIONS * error


def test_directions_have_the_distribution_of_the_sphere() -> None:
    rng = np.random.default_rng(11)
    plane = uniform_directions(rng, 50_000, 2)
    space = uniform_directions(rng, 50_000, 3)
    angles = np.arctan2(plane[:, 1], plane[:, 0])
    assert stats.kstest(angles, stats.uniform(-np.pi, 2 * np.pi).cdf).pvalue > LEVEL
    # Archimedes: each coordinate of a point on the sphere is uniform.
    for d in range(3):
        assert stats.kstest(space[:, d], stats.uniform(-1, 2).cdf).pvalue > LEVEL
    np.testing.assert_allclose(np.linalg.norm(space, axis=1), 1, rtol=1e-15 * 4)


# The value


@given(
    m=st.integers(1, 20),
    n=st.integers(1, 8),
    seed=st.integers(0, 2**64 - 1),
    name=st.sampled_from(list(DISTRIBUTIONS)),
)
def test_the_same_arguments_give_the_same_frequencies(m: int, n: int, seed: int, name: str) -> None:
    a, b = (draw_frequencies(m, n, distribution=name, seed=seed, scale=2.0) for _ in range(2))
    assert a == b
    assert hash(a) == hash(b)
    assert a.fingerprint == b.fingerprint
    assert (a.m, a.n, a.scale, a.distribution, a.seed) == (m, n, 2.0, name, seed)
    other = draw_frequencies(m, n, distribution=name, seed=seed ^ 1, scale=2.0)
    assert other != a
    assert other.fingerprint != a.fingerprint


@given(data=st.data(), m=st.integers(1, 4), n=st.integers(1, 3))
def test_the_fingerprint_depends_on_every_bit(data: st.DataObject, m: int, n: int) -> None:
    f = draw_frequencies(m, n, seed=1, origin=np.arange(1.0, n + 1))
    name, kind = data.draw(st.sampled_from([("turns", np.uint32), ("origin", np.uint64)]))
    bits = np.array(getattr(f, name)).view(kind)
    place = data.draw(st.integers(0, bits.size - 1))
    bit = data.draw(st.integers(0, 8 * bits.itemsize - 1))
    bits.ravel()[place] ^= kind(1 << bit)
    flipped = bits.view(getattr(f, name).dtype)
    if not np.isfinite(flipped).all():
        with pytest.raises(ParameterError, match="finite"):
            replace(f, **{name: flipped})
        return
    changed = replace(f, **{name: flipped})
    assert changed.fingerprint != f.fingerprint
    assert changed != f


def test_the_fingerprint_depends_on_the_shape() -> None:
    wide = Frequencies(np.zeros((2, 3), np.float32), np.zeros(3), 1.0, "gaussian")
    tall = Frequencies(np.zeros((3, 2), np.float32), np.zeros(2), 1.0, "gaussian")
    assert wide.fingerprint != tall.fingerprint


def test_the_fingerprint_is_pinned() -> None:
    """Files and remote workers identify frequencies by it: it may never change."""
    f = Frequencies(np.arange(6, dtype=np.float32).reshape(3, 2) / 4, [0.5, -1.0], 1.0, "gaussian")
    assert f.fingerprint == "286d7f98201e57544ffd160b2ab00465c466a8dc26a955c689a0710b3abe4e18"


def test_omega_is_defined_by_the_turns() -> None:
    f = draw_frequencies(50, 4, scale=0.3, seed=2)
    assert f.turns.dtype == np.float32
    assert f.omega.dtype == np.float64
    assert np.array_equal(f.omega, 2 * np.pi * f.turns.astype(np.float64))


@given(exponent=st.integers(-30, 30))
def test_frequencies_scale_inversely_with_sigma(exponent: int) -> None:
    unit = draw_frequencies(20, 3, seed=5)
    scaled = draw_frequencies(20, 3, seed=5, scale=4.0**exponent)
    # Products with powers of two are exact.
    assert np.array_equal(scaled.turns * np.float32(2.0**exponent), unit.turns)


def test_frequencies_are_frozen() -> None:
    f = draw_frequencies(5, 2)
    with pytest.raises(FrozenInstanceError):
        f.scale = 2.0  # type: ignore[misc]
    for array in (f.turns, f.origin, f.omega):
        assert not array.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


@pytest.mark.parametrize(
    "view",
    [lambda a: a, lambda a: a[:], lambda a: np.asfortranarray(a)],
    ids=["itself", "view", "fortran"],
)
@pytest.mark.parametrize("writeable", [True, False])
def test_frequencies_are_copies_of_the_callers_arrays(view: object, writeable: bool) -> None:
    base = np.ones((4, 2), np.float32)
    given_turns = view(base)  # type: ignore[operator]
    given_turns.flags.writeable = writeable
    f = Frequencies(given_turns, np.zeros(2), 1.0, "gaussian")
    assert given_turns.flags.writeable == writeable
    if given_turns is base:
        base.flags.writeable = True
    base[:] = 5
    assert np.array_equal(f.turns, np.ones((4, 2)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"m": 0, "n": 2}, "at least 1"),
        ({"m": 3, "n": 0}, "at least 1"),
        ({"m": -1, "n": 2}, "at least 1"),
        ({"m": 2.5, "n": 2}, "whole number"),
        ({"m": 3, "n": 2, "scale": 0.0}, "positive, finite variance; got 0.0"),
        ({"m": 3, "n": 2, "scale": float("nan")}, "positive, finite variance; got nan"),
        ({"m": 3, "n": 2, "scale": "wide"}, "positive, finite variance; got 'wide'"),
        ({"m": 3, "n": 2, "scale": 1e-90}, "finite numbers in float32; rescale"),
        ({"m": 3, "n": 2, "origin": np.zeros(3)}, r"got \(3, 2\) and \(3,\)"),
        ({"m": 3, "n": 2, "origin": np.array([0.0, np.nan])}, "finite"),
        (
            {"m": 3, "n": 2, "distribution": "cauchy"},
            "no frequency distribution 'cauchy'; choose one of 'multiscale', 'adapted-radius'",
        ),
        ({"m": 3, "n": 2, "seed": -1}, "got -1"),
        ({"m": 3, "n": 2, "seed": "x"}, "got 'x'"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        draw_frequencies(**arguments)  # type: ignore[arg-type]


def test_a_sketch_needs_as_many_numbers_as_there_are_unknowns() -> None:
    require_enough_frequencies(m=15, n_clusters=10, n_features=2)
    with pytest.raises(ParameterError, match=r"m = 14 .*\(30 unknowns\).* sketch_size=100 \(5 K n"):
        require_enough_frequencies(m=14, n_clusters=10, n_features=2)


def test_beside_cells_a_sketch_needs_as_many_numbers_as_judge_them() -> None:
    require_enough_frequencies(m=16, n_clusters=50, n_features=2, n_cells=100)
    for m, n_cells in ((15, 100), (16, 99)):
        with pytest.raises(ParameterError, match=f"m = {m} .* too small for 50 clusters"):
            require_enough_frequencies(m, n_clusters=50, n_features=2, n_cells=n_cells)
