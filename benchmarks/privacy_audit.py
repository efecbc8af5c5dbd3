"""An audit of private releases: what does the best of several attacks learn about one row?

An adversary knows the design, the number of clusters, the bounds and every row but one, and chooses
that one, the canary. Many releases are made with it and as many without it. Each attack gives a
release a score; every threshold of the score is a test whether the canary is in the data, with its
rates of false alarms and misses: a trade-off curve. Gaussian noise of deviation sigma on numbers
that the canary moves by Delta allows no curve below that of two normal distributions whose means
are mu = Delta / sigma apart. The best attack and threshold on half of the releases are then tested
on the other half, once, and Clopper-Pearson bounds of the two rates give a lower bound of mu at
95 % confidence. It must not exceed the stated mu; with the noise halved, it must.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri
from scipy.stats import beta

import ckm
from benchmarks.harness import Target, options, report, show
from ckm._core.accounting import rho_of, variance_for
from ckm._core.tally import PAIR_BOUND
from ckm._privacy.discrete_gaussian import RandomBits, discrete_gaussian

DELTA = 1e-6
FREQUENCIES = 20
COLUMNS = 3
CONFIDENCE = 0.95
# The two rates share the error of the confidence level.
_TAIL = (1 - CONFIDENCE) / 2


@dataclass(frozen=True)
class Game:
    """Neighbouring data sets, as the adversary sees them.

    `without` are the exact integers of the data without the canary, `canary` what it adds to them,
    and `variance` is that of the noise on each.
    """

    without: np.ndarray
    canary: np.ndarray
    variance: int

    def play(self, has_canary: bool, count: int, bits: RandomBits = os.urandom) -> np.ndarray:
        """Return `count` releases, less the exact integers without the canary."""
        noise = discrete_gaussian(self.variance, count * self.canary.size, bits)
        moved = noise.reshape(count, -1) + (self.canary if has_canary else 0)
        return moved.astype(np.float64) / float(self.variance) ** 0.5


def _project(seen: np.ndarray, canary: np.ndarray) -> np.ndarray:
    return seen @ canary / np.linalg.norm(canary)


def _largest_number(seen: np.ndarray, canary: np.ndarray) -> np.ndarray:
    at = np.argmax(np.abs(canary))
    return seen[:, at] * np.sign(canary[at])


def _norm(seen: np.ndarray, canary: np.ndarray) -> np.ndarray:
    return np.linalg.norm(seen, axis=1)


def _signs(seen: np.ndarray, canary: np.ndarray) -> np.ndarray:
    return np.sign(seen) @ np.sign(canary)


# The first is the likelihood ratio, the most powerful test there is.
ATTACKS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "projection onto the canary": _project,
    "the number it moves most": _largest_number,
    "norm": _norm,
    "signs": _signs,
}


def design() -> ckm.Sketch:
    """Return an empty sketch whose frequencies no row has decided."""
    frequencies = ckm.draw_frequencies(FREQUENCIES, COLUMNS, scale=0.1, seed=1)
    return ckm.Sketch.empty(frequencies)


def games(epsilon: float, noise: float) -> dict[str, Game]:
    """Return a game for each canary; the noise has `noise` times the deviation that it should."""
    like = design()
    rng = np.random.default_rng(0)
    others = rng.normal(size=(200, COLUMNS))
    canaries = {
        "at the origin": like.frequencies.origin,
        "in a corner": np.full(COLUMNS, 5.0),
        "anywhere": rng.normal(size=COLUMNS),
    }
    bound = FREQUENCIES * PAIR_BOUND
    variance = int(noise**2 * variance_for(rho_of(epsilon, DELTA), bound))
    exact = ckm.sketch(others, like=like).tally.sums.ravel()
    games = {}
    for name, row in canaries.items():
        both = ckm.sketch(np.vstack([others, row]), like=like).tally.sums.ravel()
        games[name] = Game(exact, both - exact, variance)
    return games


def rates(present: np.ndarray, absent: np.ndarray, threshold: float) -> tuple[int, int]:
    """Return how often the canary is missed, and how often it is seen where it is not."""
    return int((present <= threshold).sum()), int((absent > threshold).sum())


def mu_of(misses: float, alarms: float) -> float:
    """Return the distance of two normal distributions with these rates of errors."""
    return float(ndtri(1 - alarms) - ndtri(misses))


def upper_bound(events: int, count: int) -> float:
    """Return the Clopper-Pearson bound of a rate, of which `_TAIL` is the risk."""
    return 1.0 if events == count else float(beta.ppf(1 - _TAIL, events + 1, count - events))


def lower_bound_of_mu(present: np.ndarray, absent: np.ndarray, threshold: float) -> float:
    """Return a lower bound of mu from scores that did not choose the threshold."""
    misses, alarms = rates(present, absent, threshold)
    return mu_of(upper_bound(misses, len(present)), upper_bound(alarms, len(absent)))


def audit(game: Game, count: int, bits: RandomBits = os.urandom) -> dict[str, Any]:
    """Return what the best attack says about mu, from `count` releases."""
    present = game.play(True, count // 2, bits)
    absent = game.play(False, count // 2, bits)
    half = count // 4
    best: dict[str, Any] = {"chosen_by": -np.inf}
    for name, attack in ATTACKS.items():
        with_it = attack(present, game.canary)
        without = attack(absent, game.canary)
        # The whole curve: every threshold between scores of the first half.
        for threshold in np.quantile(np.append(with_it[:half], without[:half]), _LEVELS):
            chosen_by = lower_bound_of_mu(with_it[:half], without[:half], threshold)
            if chosen_by > best["chosen_by"]:
                misses, alarms = rates(with_it[half:], without[half:], threshold)
                rest = len(with_it) - half
                best = {
                    "attack": name,
                    "chosen_by": chosen_by,
                    "misses": misses / rest,
                    "alarms": alarms / rest,
                    "lower": lower_bound_of_mu(with_it[half:], without[half:], threshold),
                }
    return best


_LEVELS = np.linspace(0.01, 0.99, 99)


def main() -> None:
    parser = options("Audit private releases by attacks.")
    arguments = parser.parse_args()
    count = 1000 if arguments.quick else 10_000
    results = []
    targets = []
    for epsilon in (1.0, 3.0, 10.0):
        stated = (2 * rho_of(epsilon, DELTA)) ** 0.5
        for noise in (1.0, 0.5):
            found = {
                name: {"canary": name, **audit(game, count)}
                for name, game in games(epsilon, noise).items()
            }
            # The canary, too, is chosen before the releases that count.
            best = max(found.values(), key=lambda each: each["chosen_by"])
            results.append({"epsilon": epsilon, "noise": noise, "stated": stated, **best})
            what = f"lower bound of mu, epsilon = {epsilon:g}, {noise:g} of the noise"
            targets.append(Target(what, stated, best["lower"], at_most=noise == 1))
    columns = ["epsilon", "noise", "canary", "attack", "misses", "alarms", "lower", "stated"]
    rows = [[each[name] for name in columns] for each in results]
    show(f"{count:,} releases of each, 95 % confidence", columns, rows)
    settings = {"releases": count, "delta": DELTA, "frequencies": FREQUENCIES}
    report("privacy-audit", arguments.quick, settings, results, targets)


if __name__ == "__main__":
    main()
