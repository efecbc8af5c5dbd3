"""Checks of arguments and values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckm._messages import Argument
from ckm._util.checks import check_whole_number, first_nonfinite, require_float32
from ckm.errors import NonFiniteError, ParameterError


@given(
    shape=st.tuples(st.integers(0, 6), st.integers(1, 5)),
    places=st.lists(st.integers(0, 29), max_size=4),
    value=st.sampled_from([np.nan, np.inf, -np.inf]),
    order=st.sampled_from(["C", "F"]),
)
def test_the_first_nonfinite_value_is_found(
    shape: tuple[int, int], places: list[int], value: float, order: str
) -> None:
    X = np.zeros(shape, order=order)  # type: ignore[call-overload]
    inside = [place for place in places if place < X.size]
    for place in inside:
        X[np.unravel_index(place, shape)] = value
    expected = divmod(min(inside), shape[1]) if inside else None
    assert first_nonfinite(X) == expected


def test_integers_are_finite() -> None:
    assert first_nonfinite(np.arange(6).reshape(2, 3)) is None


def test_values_beyond_float32_are_refused_at_their_place() -> None:
    X = np.zeros((3, 2))
    require_float32(X)
    X[1, 1] = 1e39
    with pytest.raises(NonFiniteError, match=r"Row 1, column 1 holds 1e\+39, which overflows"):
        require_float32(X)


def test_errors_name_their_argument_as_data() -> None:
    with pytest.raises(ParameterError, match="pool must be a whole number") as caught:
        check_whole_number(-1, "pool", 0)
    assert caught.value.message.parts[0] == Argument("pool")
