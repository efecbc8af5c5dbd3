"""Releases of weighted rows: whole numbers up to a public cap, by which the noise grows."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sketch_files import forge, metadata_of

import ckm
from ckm._core.budget import Budget
from ckm._core.release import squared_sensitivity
from ckm._core.storage import deserialise, serialise
from ckm._privacy.releasing import exact_query, sensitivity_of
from ckm.errors import DataError, MismatchError, ParameterError, SketchFileError

BOUNDS = ([-4.0, -4.0], [4.0, 4.0])
CAP = 5
DESIGN = ckm.public_frequencies(BOUNDS, sketch_size=30, max_weight=CAP)
PLAIN = ckm.public_frequencies(BOUNDS, sketch_size=30)
RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(400, 2))
WEIGHTS = RNG.integers(0, 9, 400)


def weighted(rows=ROWS, weights=WEIGHTS, design=DESIGN, **options):
    return ckm.sketch(rows, like=design, sample_weight=weights, **options)


def numbers(sketch: ckm.Sketch) -> np.ndarray:
    return exact_query(sketch, sketch.tally.bounded).as_vector()


@pytest.fixture(scope="module")
def exact() -> ckm.Sketch:
    return weighted()


def test_a_row_of_weight_w_counts_as_w_rows_up_to_the_cap(exact):
    repeated = np.repeat(ROWS, np.minimum(WEIGHTS, CAP), axis=0)
    same = ckm.sketch(repeated, like=DESIGN)
    assert (numbers(exact) == numbers(same)).all()
    assert exact.exact
    assert exact.count == exact.weight == len(repeated)
    assert exact.tally.bounded.capped == (WEIGHTS > CAP).sum()
    assert same.tally.bounded.capped == 0
    np.testing.assert_allclose(exact.mean, same.mean, rtol=1e-12)
    # What chance does is that of weighted rows, not of copies.
    squares = (np.minimum(WEIGHTS, CAP) ** 2).sum()
    assert exact.effective_size == pytest.approx(len(repeated) ** 2 / squares)


@pytest.mark.parametrize("weight", [1, CAP, CAP + 1, 1e30])
@pytest.mark.parametrize("row", [[0.0, 0.0], [4.0, -4.0], [1e9, 1e9], [0.3, -2.7]])
def test_a_row_of_any_weight_moves_the_sums_by_no_more_than_is_stated(row, weight, exact):
    alone = weighted([row], [weight])
    moved = numbers(exact + alone) - numbers(exact)
    squared = sum(int(number) ** 2 for number in moved)
    one = squared_sensitivity(30, 2)
    assert squared <= min(weight, CAP) ** 2 * one
    assert sensitivity_of(Budget.of(1.0, 1e-6), DESIGN.frequencies) == CAP**2 * one
    # Not by much less: a corner attains all of it but rounding.
    if row == [4.0, -4.0]:
        assert squared > 0.9999 * min(weight, CAP) ** 2 * one


def test_caps_on_weights_and_on_rows_of_a_user_multiply():
    user = Budget.of(1.0, 1e-6, "user", 3)
    assert sensitivity_of(user, DESIGN.frequencies) == (3 * CAP) ** 2 * squared_sensitivity(30, 2)
    frame = pd.DataFrame(ROWS, columns=["a", "b"]).assign(w=WEIGHTS, who=np.arange(400) % 50)
    named = ckm.public_frequencies(BOUNDS, sketch_size=30, columns=["a", "b"], max_weight=CAP)
    s = ckm.sketch(frame, like=named, weight_column="w", user_column="who", max_rows_per_user=3)
    user_release = ckm.release(s, 1.0, 1e-6, unit="user").release
    row_release = ckm.release(PLAIN, 1.0, 1e-6).release
    ratio = user_release.variance / row_release.variance
    assert ratio == pytest.approx((3 * CAP) ** 2, rel=1e-12)


def test_the_cap_is_part_of_the_design(exact, tmp_path: Path):
    assert DESIGN.frequencies.fingerprint != PLAIN.frequencies.fingerprint
    with pytest.raises(MismatchError, match="different frequencies"):
        exact + ckm.sketch(ROWS, like=PLAIN)
    private = ckm.release(exact, 1.0, 1e-6)
    assert private.effective_size == pytest.approx(private.weight / CAP)
    for sketch in (DESIGN, exact, private):
        sketch.save(tmp_path / "s.ckm")
        again = ckm.load(tmp_path / "s.ckm")
        assert again == sketch
        assert again.frequencies.bounds.max_weight == CAP
        assert again.effective_size == sketch.effective_size
    both = ckm.merge([private, private], population="same")
    assert both.release.max_weight == CAP


def test_sums_of_parts_are_those_of_all(exact):
    half = weighted(ROWS[:200], WEIGHTS[:200])
    rest = weighted(ROWS[200:], WEIGHTS[200:])
    assert half + rest == exact
    left = exact - half
    assert (numbers(left) == numbers(rest)).all()
    assert left.effective_size == pytest.approx(rest.effective_size)
    assert weighted(n_jobs=2) == exact


def test_a_pass_with_weights_can_be_resumed(exact, tmp_path: Path):
    frame = pd.DataFrame(ROWS, columns=["a", "b"]).assign(w=WEIGHTS)
    frame[:300].to_csv(tmp_path / "1.csv", index=False)
    frame[300:].to_csv(tmp_path / "2.csv", index=False)
    named = ckm.public_frequencies(BOUNDS, sketch_size=30, columns=["a", "b"], max_weight=CAP)
    options = {"weight_column": "w", "checkpoint": tmp_path / "c", "checkpoint_interval": 0}
    (tmp_path / "2.csv").rename(tmp_path / "later")
    (tmp_path / "2.csv").write_text("a,b,w\n1,x,2\n")
    with pytest.raises(DataError):
        ckm.sketch([tmp_path / "1.csv", tmp_path / "2.csv"], like=named, **options)
    (tmp_path / "later").replace(tmp_path / "2.csv")
    whole = ckm.sketch([tmp_path / "1.csv", tmp_path / "2.csv"], like=named, resume=True, **options)
    assert (numbers(whole) == numbers(exact)).all()


def test_a_forged_cap_is_refused(exact):
    data = serialise(exact)
    bounded = metadata_of(data)["bounded"]
    for own in (
        {"max_weight": 1},
        {"max_weight": 0},
        {"max_weight": 2.5},
        {"bounded": bounded | {"capped": -1}},
        {"bounded": bounded | {"capped": exact.count + 1}},
        {"squared_weight": 1e9},
    ):
        with pytest.raises(SketchFileError):
            deserialise(forge(data, own, {}))


# Mistakes


def test_weights_without_a_cap_are_refused_with_what_to_do():
    s = ckm.sketch(ROWS, like=PLAIN, sample_weight=WEIGHTS)
    with pytest.raises(DataError, match=r"design that caps them.*max_weight=") as caught:
        ckm.release(s, 1.0, 1e-6)
    assert str(caught.value).endswith(".")


def test_weights_that_are_not_whole_numbers_are_refused_and_not_quoted():
    with pytest.raises(DataError, match="1 of 3 weights are not whole numbers") as caught:
        weighted(ROWS[:3], [1, 2.25, 3])
    assert "2.25" not in str(caught.value)
    with pytest.raises(DataError, match="design that caps them"):
        ckm.release(weighted().scaled(0.5), 1.0, 1e-6)


@pytest.mark.parametrize(
    ("cap", "message"),
    [
        (0, "whole number, at least 1"),
        (2.5, "whole number, at least 1"),
        ("many", "whole number, at least 1"),
        (10**6, "divide the weights by a public number"),
    ],
)
def test_caps_that_are_refused(cap, message):
    with pytest.raises(ParameterError, match=f"max_weight.*{message}"):
        ckm.public_frequencies(BOUNDS, sketch_size=30, max_weight=cap)


def test_a_pool_is_refused():
    with pytest.raises(ParameterError, match="pool=3 samples rows by weights"):
        weighted(pool=3)
