"""How tests of bad input check errors."""

from collections.abc import Callable
from typing import Any

import pytest

import ckm
from ckm.errors import (
    CkmError,
)


def fail(
    error: type[CkmError],
    seen: str,
    remedy: str,
    call: Callable[..., Any],
    *args: Any,
    **options: Any,
) -> str:
    """The message of a call that must fail with exactly this class, saying what was seen and what
    to do (two fragments of it).
    """
    with pytest.raises(CkmError) as caught:
        call(*args, **options)
    message = str(caught.value)
    assert type(caught.value) is error, message
    assert seen in message
    assert remedy in message
    assert "\n" not in message
    return message


def sketch(data: Any, **options: Any) -> ckm.Sketch:
    return ckm.sketch(data, **({"n_clusters": 2, "random_state": 0} | options))
