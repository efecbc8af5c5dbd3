"""The audit of private releases sees the noise that is there, and would see too little."""

from random import Random

import numpy as np
import pytest

from benchmarks.privacy_audit import audit, games, stated_mu

EPSILON = 10.0


@pytest.mark.parametrize(("noise", "is_private"), [(1.0, True), (0.5, False)])
def test_an_attack_learns_no_more_than_is_stated(noise, is_private):
    stated = stated_mu(EPSILON)
    game = games(EPSILON, noise)["in a corner"]
    bits = Random(0).randbytes
    found = audit(game, game.play(True, 300, bits), game.play(False, 300, bits))
    assert (found["lower"] <= stated) == is_private


def test_the_canary_is_as_long_as_a_row_can_be():
    """The bound on one row is attained, up to the rounding of the corner's pairs."""
    game = games(EPSILON, 1.0)["in a corner"]
    mu = np.linalg.norm(game.canary) / game.variance**0.5
    assert 0.999 * stated_mu(EPSILON) < mu <= stated_mu(EPSILON)
