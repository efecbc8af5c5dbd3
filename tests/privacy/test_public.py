"""A public design follows from the bounds alone, and bounds that cannot be are refused."""

import numpy as np
import pytest

import ckm
from ckm._display.reveals import reveals
from ckm.errors import ParameterError

BOUNDS = ([-30.0, -25.0], [30.0, 35.0])
ROWS = ckm.datasets.gaussian_mixture(20_000, 3, 2, separation=20, random_state=1).rows


def test_the_same_bounds_and_seed_give_the_same_design():
    a, b = (ckm.public_frequencies(BOUNDS, n_clusters=3, columns=["a", "b"]) for _ in range(2))
    assert a == b
    assert (a.columns, a.count, a.frequencies.m) == (("a", "b"), 0, 1000)
    assert a.frequencies.origin.tolist() == [0.0, 5.0]
    assert a.frequencies.spread is None
    assert ckm.public_frequencies(BOUNDS, n_clusters=3, seed=1) != a
    assert ckm.public_frequencies(BOUNDS, n_clusters=300).frequencies.m == 1200


def test_frequencies_follow_the_unit_of_the_data():
    metres = ckm.public_frequencies(BOUNDS, sketch_size=50).frequencies
    millimetres = ckm.public_frequencies(1000 * np.array(BOUNDS), sketch_size=50).frequencies
    np.testing.assert_allclose(1000 * millimetres.omega, metres.omega, rtol=1e-6)


def test_columns_may_be_measured_in_half_widths():
    far = (np.array([0.0, 0.0]), np.array([1.0, 1000.0]))
    omega = ckm.public_frequencies(far, sketch_size=2000, standardize=True).frequencies.omega
    lengths = np.sqrt((omega**2).mean(axis=0))
    assert lengths[0] / lengths[1] == pytest.approx(1000, rel=0.1)


@pytest.mark.usefixtures("fixed_noise")
def test_a_pilot_tells_scale_and_origin():
    first = ckm.public_frequencies(BOUNDS, n_clusters=3)
    pilot = ckm.release(ckm.sketch(ROWS, like=first), 0.5, 1e-6)
    design = ckm.public_frequencies(BOUNDS, n_clusters=3, pilot=pilot)
    assert first.frequencies.scale > 6
    assert 0.5 < design.frequencies.scale < 2, "the variance within clusters is 1"
    np.testing.assert_allclose(design.frequencies.origin, ROWS.mean(axis=0), atol=0.5)
    assert design.frequencies.bounds.lower.tolist() == BOUNDS[0]
    assert reveals(design) == [
        "Scale and origin of a private release, its pilot, and nothing else of rows."
    ]


@pytest.mark.usefixtures("fixed_noise")
def test_the_mean_of_a_release_does_not_depend_on_the_origin_of_its_frequencies():
    """Only a design with a pilot has another origin than the middle of the bounds."""
    rows = np.random.default_rng(0).normal([20.0, -12.0], [1.0, 2.0], size=(20_000, 2))
    first = ckm.public_frequencies(BOUNDS, n_clusters=3)
    pilot = ckm.release(ckm.sketch(rows, like=first), 0.5, 1e-6)
    second = ckm.public_frequencies(BOUNDS, n_clusters=3, pilot=pilot)
    assert np.linalg.norm(second.frequencies.origin - first.frequencies.origin) > 20
    for design in (first, second):
        release = ckm.release(ckm.sketch(rows, like=design), 1.0, 1e-6)
        np.testing.assert_allclose(release.mean, rows.mean(axis=0), atol=0.1)
        np.testing.assert_allclose(np.diag(release.covariance), rows.var(axis=0), rtol=0.2)


@pytest.mark.usefixtures("fixed_noise")
def test_moments_are_right_where_noise_on_the_sums_is_wider_than_the_rows():
    """Frequencies say them then, of which the high ones are large again: clusters are far apart."""
    bounds = ([-1000.0, -1000.0], [1000.0, 1000.0])
    rows = ckm.datasets.gaussian_mixture(20_000, 3, 2, separation=20, random_state=1).rows
    exact = ckm.sketch(rows, like=ckm.public_frequencies(bounds, n_clusters=3))
    for _ in range(4):
        pilot = ckm.release(exact, 0.2, 1e-6)
        design = ckm.public_frequencies(bounds, n_clusters=3, pilot=pilot)
        release = ckm.release(ckm.sketch(rows, like=design), 0.96, 1e-6)
        np.testing.assert_allclose(release.mean, rows.mean(axis=0), atol=0.3)
        np.testing.assert_allclose(release.covariance, np.cov(rows.T), rtol=0.2)


@pytest.mark.parametrize("pilot", ["exact", "other bounds", "rows"])
def test_a_pilot_must_be_a_release_with_these_bounds(pilot):
    design = ckm.public_frequencies(BOUNDS, n_clusters=3)
    exact = ckm.sketch(ROWS[:100], like=design)
    pilots = {"exact": exact, "other bounds": ckm.release(exact, 1.0, 1e-6), "rows": ROWS}
    bounds = ([-30, -25], [30, 36]) if pilot == "other bounds" else BOUNDS
    reason = "has other bounds" if pilot == "other bounds" else "must be a private release"
    with pytest.raises(ParameterError, match=f"pilot {reason}"):
        ckm.public_frequencies(bounds, n_clusters=3, pilot=pilots[pilot])


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        (([], []), "two arrays of one length; got shapes (0,) and (0,)"),
        (([0], [1, 2]), "two arrays of one length; got shapes (1,) and (2,)"),
        (([[0]], [[1]]), "two arrays of one length; got shapes (1, 1) and (1, 1)"),
        (([0, np.nan], [1, 1]), "must be finite numbers; those of column 1 are nan and 1"),
        (([0], [np.inf]), "must be finite numbers; those of column 0 are 0 and inf"),
        (([0, 5], [1, 5]), "a lower value below the upper one"),
        (([1], [0]), "those of column 0 are 1 and 0"),
        (([0], [1e31]), "within 1e+30"),
        (([0], [1e-31]), "a lower value below the upper one"),
        ((["a"], ["b"]), "must be two arrays of numbers"),
        (7, "must be two arrays of numbers, the lower and the upper value of each column; got int"),
        (None, "must be two arrays of numbers"),
        (([0], [1], [2]), "must be two arrays of numbers"),
    ],
)
def test_bounds_that_cannot_be_are_refused(bounds, message):
    with pytest.raises(ParameterError) as caught:
        ckm.public_frequencies(bounds, n_clusters=2)
    assert str(caught.value).startswith("bounds must ")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "number of frequencies is not known; give n_clusters= or sketch_size="),
        ({"n_clusters": 0}, "n_clusters must be a whole number, at least 1"),
        ({"sketch_size": 2.5}, "sketch_size must be a whole number, at least 1"),
        ({"n_clusters": 2, "columns": ["a"]}, "columns must be 2 names"),
        ({"n_clusters": 2, "columns": ["a", "a"]}, "columns must be different names"),
        ({"n_clusters": 2, "columns": [1, 2]}, "columns must be 2 names"),
        ({"n_clusters": 2, "scale": 0.0}, "scale"),
    ],
)
def test_other_arguments_are_checked(options, message):
    with pytest.raises(ParameterError, match=message):
        ckm.public_frequencies(BOUNDS, **options)
