"""Private releases: the noise that was stated, nothing else of the rows, and results to use."""

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load as load_tensors
from sketch_files import forge, metadata_of
from sklearn.cluster import KMeans

import ckm
from ckm._core.budget import Budget
from ckm._core.release import Release, squared_sensitivity
from ckm._core.released import released_sketch
from ckm._core.storage import deserialise, serialise
from ckm._privacy.releasing import exact_query, noise_variance
from ckm.errors import DataError, MismatchError, ParameterError, SketchFileError

K = 3
BOUNDS = ([-30.0, -25.0], [30.0, 35.0])
ROWS = ckm.datasets.gaussian_mixture(20_000, K, 2, separation=20, random_state=1).rows
DESIGN = ckm.public_frequencies(BOUNDS, n_clusters=K, columns=["a", "b"])
FRAME = pd.DataFrame(ROWS, columns=["a", "b"])
EXACT = ckm.sketch(FRAME, like=DESIGN)
SMALL = ckm.public_frequencies(BOUNDS, sketch_size=12)


def small_release(rows=ROWS[:500], epsilon=1.0, delta=1e-6, **options):
    return ckm.release(ckm.sketch(rows, like=SMALL), epsilon, delta, **options)


def noise_of(release: Release, sketch: ckm.Sketch) -> np.ndarray:
    """What was added to the numbers of a sketch."""
    query = exact_query(sketch, sketch.tally.bounded)
    pairs = [(release.sums, query.sums), (release.first, query.first)]
    pairs += [(release.second, query.second), (release.count, query.count)]
    return np.concatenate([np.ravel(noised - np.asarray(exact)) for noised, exact in pairs])


# Noise


@pytest.mark.usefixtures("fixed_noise")
@pytest.mark.parametrize("epsilon", [0.1, 10.0])
def test_the_noise_has_the_stated_variance(epsilon):
    design = ckm.public_frequencies(BOUNDS, sketch_size=20_000)
    s = ckm.sketch(ROWS[:50], like=design)
    r = ckm.release(s, epsilon, 1e-6).release
    noise = noise_of(r, s).astype(float)
    assert r.variance >= Fraction(squared_sensitivity(20_000, 2)) / (2 * Fraction(r.budget.rho))
    assert (noise**2).mean() / r.variance == pytest.approx(1, abs=0.01)
    # None of the numbers was forgotten, and none has the noise of another.
    assert (noise != 0).all()
    assert len(np.unique(noise)) == len(noise)


def test_every_release_has_new_noise_whatever_the_seeds():
    first, second = (small_release().release for _ in range(2))
    assert (first.sums != second.sums).all()
    assert first.count != second.count


def test_users_need_more_noise_by_their_cap():
    row = Budget.of(1.0, 1e-6)
    user = Budget.of(1.0, 1e-6, "user", 5)
    f = SMALL.frequencies
    assert noise_variance(user, f) == pytest.approx(25 * noise_variance(row, f))
    frame = FRAME[:500].assign(who=np.arange(500) % 100)
    s = ckm.sketch(frame, like=SMALL, user_column="who", max_rows_per_user=5)
    released = ckm.release(s, 1.0, 1e-6, unit="user").release
    assert released.variance == noise_variance(user, f)
    assert released.budget.max_rows_per_user == 5
    merged = ckm.release(s + s, 1.0, 1e-6, unit="user").release
    assert merged.budget.max_rows_per_user == 10, "a user may have rows in both"


# What a release holds


def test_a_file_says_nothing_of_the_rows_but_the_noised_numbers():
    """Two data sets, with noise that makes their numbers equal, give the same bytes."""
    many, few = (ckm.sketch(rows, like=SMALL, pool=5) for rows in (ROWS, ROWS[:7] * 3 - 50))
    budget = Budget.of(1.0, 1e-6)
    variance = noise_variance(budget, SMALL.frequencies)
    seen = small_release().release
    files = []
    for s in (many, few):
        noise = noise_of(seen, s)
        q = exact_query(s, s.tally.bounded)
        r = Release(
            q.sums + noise[:24].reshape(2, 12),
            q.count + int(noise[28]),
            q.first + noise[24:26],
            q.second + noise[26:28],
            variance,
            budget,
        )
        files.append(serialise(released_sketch(s.frequencies, r, s.columns)))
    assert files[0] == files[1]


def test_every_field_of_a_file_is_the_design_the_budget_or_noised():
    data = serialise(ckm.release(ckm.sketch(FRAME, like=DESIGN, pool=20), 1.0, 1e-6))
    design = {"turns", "origin", "bounds"}
    assert set(load_tensors(data)) == design | {"release.sums", "release.first", "release.second"}
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    own = json.loads(header["__metadata__"]["ckm"])
    assert set(own["release"]) == {
        *("count", "variance"),
        *("epsilon", "delta", "rho", "unit", "max_rows_per_user"),
    }
    of_design = {"distribution", "scale", "seed", "spread", "columns", "projection"}
    assert set(own) == {"version", "sha256", "release", *of_design}
    assert own["seed"] == DESIGN.frequencies.seed
    assert set(header) - {"__metadata__"} == set(load_tensors(data))


def test_what_a_release_shows_follows_from_its_file():
    r = ckm.release(ckm.sketch(FRAME, like=DESIGN, pool=20), 1.0, 1e-6)
    assert r.pool is None
    assert r.cells is None
    assert r.tally.bounded is None
    assert r.lower.tolist() == BOUNDS[0], "the public bounds, not those of the rows"
    again = deserialise(serialise(r))
    assert again == r
    for name in ("mean", "covariance", "z"):
        assert getattr(again, name).tobytes() == getattr(r, name).tobytes()


@pytest.mark.usefixtures("fixed_noise")
def test_moments_and_count_are_near_those_of_the_rows():
    r = ckm.release(EXACT, 1.0, 1e-6)
    assert abs(r.count - 20_000) < 5 * r.release.count_deviation
    np.testing.assert_allclose(r.mean, ROWS.mean(axis=0), atol=0.1)
    np.testing.assert_allclose(r.covariance, np.cov(ROWS.T), rtol=0.2)


def test_whether_there_are_rows_at_all_is_not_revealed():
    assert ckm.release(SMALL, 1.0, 1e-6).release.budget.epsilon == 1.0


@pytest.mark.parametrize(
    ("metadata", "tensors"),
    [
        ({"count": 7}, {}),
        ({"count": "7.0"}, {}),
        ({"variance": "0"}, {}),
        ({"variance": "9" * 100}, {}),
        ({"epsilon": -1.0}, {}),
        ({"delta": 1.0}, {}),
        ({"unit": "flock"}, {}),
        ({"max_rows_per_user": 3}, {}),
        ({}, {"release.first": np.zeros(3, np.int64)}),
        ({}, {"release.sums": np.full((2, 12), -(2**63))}),
        ({}, {"release.sums": np.zeros((2, 12))}),
        ({}, {"bounds": np.array([[0.0, 0.0], [1.0, 0.0]])}),
        ({}, {"sums": np.zeros((2, 12), np.int64)}),
    ],
)
def test_a_forged_release_is_refused(metadata, tensors):
    data = serialise(small_release())
    own = {"release": metadata_of(data)["release"] | metadata}
    with pytest.raises(SketchFileError):
        deserialise(forge(data, own, tensors))


# Together


def test_releases_of_disjoint_people_are_as_private_as_the_least(tmp_path: Path):
    a = small_release(epsilon=1.0)
    b = small_release(ROWS[500:900], epsilon=0.5)
    a.save(tmp_path / "a.ckm")
    both = ckm.merge([ckm.load(tmp_path / "a.ckm"), b], population="disjoint")
    assert both.release.budget == a.release.budget
    assert (both.release.sums == a.release.sums + b.release.sums).all()
    assert both.release.variance == a.release.variance + b.release.variance
    both.save(tmp_path / "both.ckm")
    assert ckm.load(tmp_path / "both.ckm") == both


def test_releases_of_the_same_people_add_up():
    a = small_release()
    budget = ckm.merge([a, small_release(), small_release()], population="same").release.budget
    assert budget.rho == pytest.approx(3 * a.release.budget.rho)
    assert 1 < budget.epsilon < 3
    assert budget.delta == 1e-6


@pytest.mark.parametrize("population", [None, "both", ""])
def test_whose_rows_they_are_has_to_be_said(population):
    with pytest.raises(ParameterError, match="population='disjoint' if no one is in two of them"):
        ckm.merge([small_release(), small_release()], population=population)


def test_other_arithmetic_with_releases_is_refused():
    a = small_release()
    exact = ckm.sketch(ROWS[:500], like=SMALL)
    for wrong in (lambda: a + a, lambda: a + exact, lambda: exact + a, lambda: sum([a, a])):
        with pytest.raises(ParameterError, match=r"are added by ckm\.merge"):
            wrong()
    for wrong in (lambda: a - a, lambda: exact - a, lambda: a - exact):
        with pytest.raises(ParameterError, match="cannot be subtracted"):
            wrong()
    with pytest.raises(ParameterError, match="cannot be scaled"):
        a.scaled(0.5)
    with pytest.raises(ParameterError, match="would hold exact sums of rows"):
        ckm.merge([a, exact], population="same")
    with pytest.raises(ParameterError, match="is for private releases"):
        ckm.merge([exact, exact], population="same")
    with pytest.raises(MismatchError, match="different frequencies"):
        ckm.merge([a, ckm.release(DESIGN, 1.0, 1e-6)], population="same")


def test_rows_and_users_do_not_merge():
    capped = ckm.sketch(FRAME.assign(who=0), like=SMALL, user_column="who", max_rows_per_user=2)
    user = ckm.release(capped, 1.0, 1e-6, unit="user")
    with pytest.raises(MismatchError, match="protects each user, the other each row"):
        ckm.merge([user, small_release()], population="disjoint")


# Ledgers


def test_a_ledger_says_what_was_spent_in_all(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    path = tmp_path / "spent.json"
    with caplog.at_level("INFO", logger="ckm"):
        for _ in range(2):
            small_release(ledger=path, population="patients")
    assert "2 releases with epsilon = 1.451 at delta = 1e-06" in caplog.text
    path.write_text("{")
    with pytest.raises(ckm.errors.LedgerError, match="Nothing was released"):
        small_release(ledger=path)
    with pytest.raises(ParameterError, match="recorded in a ledger; name one with ledger="):
        small_release(population="patients")


def test_a_release_that_is_refused_is_not_in_the_ledger(tmp_path: Path):
    with pytest.raises(ParameterError, match="epsilon"):
        small_release(epsilon=-1, ledger=tmp_path / "spent.json")
    assert not (tmp_path / "spent.json").exists()


# Mistakes

SECRET = 12.3456789


def from_data():
    rows = ROWS[:500] + SECRET
    return ckm.sketch(rows, sketch_size=12, random_state=0)


@pytest.mark.parametrize(
    ("make", "options", "error", "message"),
    [
        (None, {"epsilon": 0}, ParameterError, "epsilon must be a positive, finite number"),
        (None, {"epsilon": -1}, ParameterError, "epsilon must be a positive, finite number"),
        (None, {"epsilon": np.nan}, ParameterError, "epsilon must be a positive, finite number"),
        (None, {"delta": 0}, ParameterError, "delta must be a number between 0 and 1"),
        (None, {"delta": 1}, ParameterError, "delta must be a number between 0 and 1"),
        (None, {"unit": "person"}, ParameterError, "unit must be 'row' or 'user'"),
        (None, {"unit": "user"}, DataError, "How many rows one user has is not known"),
        (from_data, {}, ParameterError, "frequencies of this sketch were chosen from rows"),
        (lambda: ROWS, {}, ParameterError, "release takes a Sketch; got ndarray"),
        (small_release, {}, ParameterError, "is a private release already"),
        (
            lambda: ckm.sketch(np.full((9, 2), SECRET), like=SMALL, sample_weight=np.ones(9)),
            {},
            DataError,
            "rows of this sketch have weights",
        ),
    ],
)
def test_what_is_refused_and_why_without_a_value_of_a_row(make, options, error, message):
    s = ckm.sketch(np.full((9, 2), SECRET), like=SMALL) if make is None else make()
    with pytest.raises(error, match=message) as caught:
        ckm.release(s, **{"epsilon": 1.0, "delta": 1e-6} | options)
    assert str(caught.value).endswith(".")
    assert "12.3" not in str(caught.value)


def test_columns_that_are_missing_are_named_without_a_value():
    wrong = pd.DataFrame({"a": [SECRET] * 5, "c": [SECRET] * 5})
    with pytest.raises(MismatchError, match="'b'") as caught:
        ckm.sketch(wrong, like=DESIGN)
    assert "12.3" not in str(caught.value)


# Results


@pytest.fixture(scope="module")
def best() -> float:
    return float(KMeans(K, n_init=5, random_state=0).fit(ROWS).inertia_)


def sse(centroids: np.ndarray) -> float:
    return float(((ROWS[:, None] - centroids) ** 2).sum(axis=2).min(axis=1).sum())


@pytest.mark.usefixtures("fixed_noise")
def test_centroids_are_nearly_those_of_k_means(best):
    found = ckm.decode(ckm.release(EXACT, 1.0, 1e-6), K, random_state=0)
    assert sse(found.centroids) / best < 1.01
    assert found.status == "ok"
    np.testing.assert_allclose(np.sort(found.weights), 1 / 3, atol=0.05)


@pytest.mark.usefixtures("fixed_noise")
def test_merged_releases_are_as_good_as_one(best):
    parts = [ckm.sketch(part, like=DESIGN) for part in np.array_split(ROWS, 4)]
    merged = ckm.merge([ckm.release(s, 1.0, 1e-6) for s in parts], population="disjoint")
    assert merged.release.budget.epsilon == 1.0
    assert sse(ckm.decode(merged, K, random_state=0).centroids) / best < 1.01


@pytest.mark.usefixtures("fixed_noise")
def test_other_questions_know_the_noise():
    r = ckm.release(EXACT, 1.0, 1e-6)
    curve = ckm.curve(r, 5, random_state=0)
    assert curve.suggestion == K
    assert curve.residual[K - 1] == pytest.approx(1, abs=0.3)
    means = KMeans(K, n_init=1, random_state=0).fit(ROWS).cluster_centers_
    found = ckm.fit_mixture(r, K, random_state=0).means
    np.testing.assert_allclose(
        found[np.argsort(found[:, 1])], means[np.argsort(means[:, 1])], atol=0.3
    )
    quartiles = np.quantile(ROWS, [0.25, 0.75], axis=0).T
    np.testing.assert_allclose(ckm.marginals(r).quantiles([0.25, 0.75]), quartiles, atol=0.5)
    moved = ckm.release(ckm.sketch(FRAME.assign(a=FRAME["a"] + 1), like=DESIGN), 1.0, 1e-6)
    assert ckm.compare(r, moved).p_value < 1e-3
    assert ckm.compare(r, ckm.release(EXACT, 1.0, 1e-6)).p_value > 1e-3


@pytest.mark.usefixtures("fixed_noise")
def test_too_much_noise_is_said():
    noisy = ckm.release(EXACT, 0.004, 1e-6)
    with pytest.warns(ckm.errors.ClustersWarning, match="noise of this private release"):
        found = ckm.decode(noisy, K, random_state=0)
    assert found.status == "uncertain"
    assert "noise of this private release is expected to add" in found.message
    assert "larger epsilon" in found.message


def test_more_clusters_than_rows_as_far_as_is_known():
    r = small_release(ROWS[:2], epsilon=100.0)
    few = released_sketch(SMALL.frequencies, replace(r.release, count=0), None)
    with pytest.raises(DataError, match=r"private release.*noise.*larger epsilon"):
        ckm.decode(few, K, random_state=0)
