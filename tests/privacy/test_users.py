"""Releases that protect users know how many rows each of them has."""

import numpy as np
import pandas as pd
import pytest

import ckm
from ckm.errors import DataError, MismatchError, ParameterError

DESIGN = ckm.public_frequencies(([-4, -4], [4, 4]), sketch_size=30, columns=["a", "b"])


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(500, 2)), columns=["a", "b"])
    return rows.assign(user=rng.integers(0, 40, 500))


def sketch(frame, cap):
    return ckm.sketch(frame, like=DESIGN, user_column="user", max_rows_per_user=cap)


def test_noise_grows_with_the_rows_of_a_user(frame):
    row = ckm.release(ckm.sketch(frame[["a", "b"]], like=DESIGN), 1.0, 1e-6)
    user = ckm.release(sketch(frame, 3), 1.0, 1e-6, unit="user")
    assert user.release.variance == pytest.approx(9 * row.release.variance, rel=1e-12)
    assert user.release.budget.max_rows_per_user == 3


def test_the_cap_survives_files_and_adds_up(frame, tmp_path):
    part = sketch(frame, 3)
    part.save(tmp_path / "s.ckm")
    both = ckm.load(tmp_path / "s.ckm") + sketch(frame, 4)
    assert both.tally.bounded.user_cap == 7
    assert (DESIGN + part).tally.bounded.user_cap == 3
    assert (part + DESIGN) == part


def test_rows_without_a_cap_are_not_mixed_with_those_of_one(frame):
    # Their sums are zero, and yet they are rows.
    middle = ckm.sketch(pd.DataFrame(np.zeros((5, 2)), columns=["a", "b"]), like=DESIGN)
    with pytest.raises(MismatchError, match="limited number of rows of each user"):
        middle + sketch(frame, 3)


def test_each_unit_needs_its_sketch(frame):
    with pytest.raises(DataError, match="How many rows one user has is not known"):
        ckm.release(ckm.sketch(frame[["a", "b"]], like=DESIGN), 1.0, 1e-6, unit="user")
    with pytest.raises(ParameterError, match="may let another row in"):
        ckm.release(sketch(frame, 3), 1.0, 1e-6)
