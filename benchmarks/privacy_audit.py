"""An audit of private releases: what does the best of several attacks learn about one row?

An adversary knows the design, the number of clusters, the bounds and every row but one, and chooses
that one, the canary. Many releases (sums, count and moments) are made with it and as many without
it. Each attack gives a release a score; every threshold of the score is a test whether the canary
is in the data, with its rates of false alarms and misses: a trade-off curve. Gaussian noise of
deviation sigma on numbers that the canary moves by Delta allows no curve below that of two normal
distributions whose means are mu = Delta / sigma apart. The best attack and threshold on half of the
releases are then tested on the other half, once, and Clopper-Pearson bounds of the two rates give a
lower bound of mu at 95 % confidence, for all epsilons together. It must not exceed the stated mu;
with the noise halved, it must. `ckm.release` itself is audited too, at one
epsilon.
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
from ckm._core.budget import Budget
from ckm._privacy.discrete_gaussian import RandomBits, discrete_gaussian
from ckm._privacy.releasing import exact_query, noise_variance, require_public

DELTA = 1e-6
FREQUENCIES = 20
COLUMNS = 3
EPSILONS = (1.0, 3.0, 10.0)
RELEASED_EPSILON = 3.0
CONFIDENCE = 0.95
# The two rates and the audits of all epsilons share the error of the confidence level.
_TAIL = (1 - CONFIDENCE) / 2 / (len(EPSILONS) + 1)
BOUND = 5.0


@dataclass(frozen=True)
class Game:
    """Neighbouring data sets, as the adversary sees them.

    `without` and `present` are the exact sketches without and with the canary, `canary` what it
    adds to the numbers of a release, and `variance` is that of the noise on each.
    """

    without: ckm.Sketch
    present: ckm.Sketch
    canary: np.ndarray
    variance: int

    def play(self, has_canary: bool, count: int, bits: RandomBits = os.urandom) -> np.ndarray:
        """Return `count` releases, less the exact integers without the canary."""
        noise = discrete_gaussian(self.variance, count * self.canary.size, bits)
        moved = noise.reshape(count, -1) + (self.canary if has_canary else 0)
        return moved.astype(np.float64) / float(self.variance) ** 0.5

    def play_release(self, has_canary: bool, count: int, epsilon: float) -> np.ndarray:
        """Return the same from `ckm.release` itself."""
        sketch = self.present if has_canary else self.without
        exact = numbers_of(self.without)
        seen = np.empty((count, len(exact)))
        for i in range(count):
            found = ckm.release(sketch, epsilon, DELTA).release
            assert found.variance == self.variance
            parts = (found.sums.ravel(), [found.count], found.first, found.second)
            seen[i] = np.concatenate(parts) - exact
        return seen / float(self.variance) ** 0.5


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


def numbers_of(sketch: ckm.Sketch) -> np.ndarray:
    """Return the exact numbers that a release adds noise to."""
    return exact_query(sketch, require_public(sketch)).as_vector()


def stated_mu(epsilon: float) -> float:
    """Return the largest Delta / sigma that a release allows."""
    return float((2 * Budget.of(epsilon, DELTA).rho) ** 0.5)


def games(epsilon: float, noise: float) -> dict[str, Game]:
    """Return a game for each canary; the noise has `noise` times the deviation that it should."""
    limit = np.full(COLUMNS, BOUND)
    design = ckm.public_frequencies((-limit, limit), sketch_size=FREQUENCIES, seed=1)
    rng = np.random.default_rng(0)
    others = rng.normal(size=(200, COLUMNS))
    canaries = {
        "in the middle": np.zeros(COLUMNS),
        "in a corner": limit,
        "far outside": np.array([1e6, -1e6, 1e6]),
    }
    whole = noise_variance(Budget.of(epsilon, DELTA), design.frequencies)
    variance = int(noise**2 * whole)
    without = ckm.sketch(others, like=design)
    found = {}
    for name, row in canaries.items():
        present = ckm.sketch(np.vstack([others, row]), like=design)
        canary = numbers_of(present) - numbers_of(without)
        found[name] = Game(without, present, canary, variance)
    return found


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


def audit(game: Game, present: np.ndarray, absent: np.ndarray) -> dict[str, Any]:
    """Return what the best attack says about mu, from releases with and without the canary."""
    half = len(present) // 2
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


def audit_epsilon(epsilon: float, noise: float, count: int) -> dict[str, Any]:
    """Return the audit of the best canary, which is chosen before the releases that count."""
    found = [
        {"canary": name, **audit(game, *(game.play(has, count // 2) for has in (True, False)))}
        for name, game in games(epsilon, noise).items()
    ]
    best = max(found, key=lambda each: each["chosen_by"])
    return {"epsilon": epsilon, "noise": noise, "stated": stated_mu(epsilon), **best}


def audit_release(count: int) -> dict[str, Any]:
    """Return the audit of `ckm.release` itself."""
    name = "in a corner"
    game = games(RELEASED_EPSILON, 1.0)[name]
    seen = [game.play_release(has, count // 2, RELEASED_EPSILON) for has in (True, False)]
    found = {"canary": f"{name}, ckm.release", **audit(game, *seen)}
    stated = stated_mu(RELEASED_EPSILON)
    return {"epsilon": RELEASED_EPSILON, "noise": 1.0, "stated": stated, **found}


_LEVELS = np.linspace(0.01, 0.99, 99)


def main() -> None:
    parser = options("Audit private releases by attacks.")
    arguments = parser.parse_args()
    count = 1000 if arguments.quick else 10_000
    results = [audit_epsilon(epsilon, noise, count) for epsilon in EPSILONS for noise in (1.0, 0.5)]
    results.append(audit_release(count))
    targets = [
        Target(
            f"lower bound of mu, epsilon = {each['epsilon']:g}, {each['noise']:g} of the noise",
            each["stated"],
            each["lower"],
            at_most=each["noise"] == 1,
        )
        for each in results
    ]
    columns = ["epsilon", "noise", "canary", "attack", "misses", "alarms", "lower", "stated"]
    rows = [[each[name] for name in columns] for each in results]
    show(f"{count:,} releases of each, 95 % confidence", columns, rows)
    settings = {"releases": count, "delta": DELTA, "frequencies": FREQUENCIES}
    report("privacy-audit", arguments.quick, settings, results, targets)


if __name__ == "__main__":
    main()
