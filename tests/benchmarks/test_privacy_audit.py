"""The audit of private releases sees the noise that is there, and would see too little."""

from random import Random

import pytest

from benchmarks.privacy_audit import DELTA, audit, games, mu_of
from ckm._core.accounting import rho_of

EPSILON = 10.0


@pytest.mark.parametrize(("noise", "is_private"), [(1.0, True), (0.5, False)])
def test_an_attack_learns_no_more_than_is_stated(noise, is_private):
    stated = (2 * rho_of(EPSILON, DELTA)) ** 0.5
    game = games(EPSILON, noise)["at the origin"]
    found = audit(game, 600, Random(0).randbytes)
    assert (found["lower"] <= stated) == is_private
    assert mu_of(found["misses"], found["alarms"]) == pytest.approx(stated / noise, rel=0.3)
