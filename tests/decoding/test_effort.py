"""A word before a pass, and before decoding, that takes long."""

import numpy as np

import ckm
from ckm._cli.errors import in_options
from ckm._decoding.effort import expected_seconds, warning_before
from ckm._sketching.effort import word_before_pass


def wide_sketch(**options: object) -> ckm.Sketch:
    """A sketch whose decoding takes minutes; nothing is decoded here."""
    X = np.random.default_rng(0).normal(size=(300, 80))
    return ckm.sketch(X, n_clusters=60, projection=None, random_state=0, **options)  # type: ignore[arg-type]


def test_long_work_is_announced_with_what_would_take_less() -> None:
    message = warning_before(wide_sketch(cells=0), 60, threads=1)
    assert message is not None
    assert message.startswith("m = 24,000 frequencies, about ")
    assert in_options(message).endswith("a sketch made with --projection 32 takes seconds.")


def test_short_work_and_what_was_done_are_not_mentioned() -> None:
    X = np.random.default_rng(0).normal(size=(300, 4))
    assert warning_before(ckm.sketch(X, n_clusters=5, random_state=0), 5, threads=1) is None
    narrow = ckm.sketch(X, sketch_size=20_000, cells=0, random_state=0)
    assert expected_seconds(narrow, 200) > expected_seconds(narrow, 20)
    message = warning_before(narrow, 200, threads=1)
    assert message is not None
    assert "--cells auto" in in_options(message)


def test_a_long_pass_is_announced_too() -> None:
    design = wide_sketch(cells=0).design
    assert word_before_pass(1000, design, threads=1) is None
    assert word_before_pass(None, design, threads=1) is None
    message = word_before_pass(10**7, design, threads=2)
    assert message is not None
    assert message.startswith("m = 24,000 frequencies of 10,000,000 rows, about ")
    assert in_options(message).endswith("--projection 32 takes less.")
