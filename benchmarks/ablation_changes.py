"""What `ablation.py` changes: a step of the decoder left out, or one of its constants at half and
at twice its value.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, fields, replace
from typing import Any
from unittest.mock import patch

import numpy as np

from ckm._decoding import density, ensemble, mixture, recovery
from ckm._decoding.doubt import Doubt
from ckm._decoding.lbfgs import Limits
from ckm._decoding.mixture import Mixture, Parametrisation, Widths, descend_atoms
from ckm._decoding.problem import Problem
from ckm._decoding.settings import DEFAULT, Settings
from ckm._kmeans import breathing
from ckm._kmeans.breathing import place

# What a sketch holds beside its frequencies: nothing; nothing, of rows with heavy tails; a pool;
# cells that suit the rows; cells whose anchors suit other rows.
KINDS = ("sketch", "heavy", "pool", "cells", "stale")
FREQUENCIES_ONLY = ("sketch", "heavy")
# A number that is never reached.
NEVER = 10**9

_make_prior = recovery.make_prior

Replacement = tuple[Any, str, Callable[..., Any]]


@dataclass(frozen=True)
class Change:
    """A decoder that differs in one thing.

    Parameters
    ----------
    name : str
        What differs.
    kinds : tuple of str
        The kinds of sketches that it may matter to.
    settings : Settings
        The constants.
    replacements : tuple of (object, name, function)
        Functions of the decoder that are replaced.
    constant : str, optional
        The constant that differs, and by which `factor`; none where a step is left out.
    """

    name: str
    kinds: tuple[str, ...]
    settings: Settings = DEFAULT
    replacements: tuple[Replacement, ...] = field(default=(), repr=False)
    constant: str | None = None
    factor: float = 1.0

    @contextmanager
    def applied(self) -> Iterator[Settings]:
        """Replace the functions; yield the settings."""
        with ExitStack() as stack:
            for where, name, function in self.replacements:
                stack.enter_context(patch.object(where, name, function))
            yield self.settings


def _without(
    name: str, kinds: tuple[str, ...], *replacements: Replacement, **values: Any
) -> Change:
    return Change(name, kinds, replace(DEFAULT, **values), replacements)


def _plain_units(
    problem: Problem, alpha: np.ndarray, width: float, widths: Widths
) -> Parametrisation:
    """Return units of sigma for centres, of 1/Q for weights and of sigma^2 for widths."""
    Q = len(alpha)
    count = Q * problem.n if widths is Widths.PER_AXIS else 1
    units = np.concatenate([np.ones(Q * problem.n), np.full(Q, 1 / Q), np.ones(count)])
    return Parametrisation(Q, problem.n, widths, units)


def _descend_one_width(
    problem: Problem, C: np.ndarray, alpha: np.ndarray, widths: np.ndarray, steps: int
) -> Mixture:
    """Descend a member whose atoms all have the same width; the moments are not matched."""
    found = descend_atoms(problem, C, alpha, float(widths.mean()), Limits(steps))
    return replace(found, width=np.full(C.shape, found.width))


def _place_on_few(problem: Problem, few: Any, many: Any, K: int, rng: np.random.Generator) -> Any:
    """Place centroids on the centres of atoms or cells alone."""
    runs = [place(*few, K, rng, n_init=2) for _ in range(problem.settings.placing_runs(K))]
    return min(runs, key=lambda run: run[2])


def _place_on_many(problem: Problem, few: Any, many: Any, K: int, rng: np.random.Generator) -> Any:
    """Place centroids on the drawn points alone."""
    return place(*many, K, rng)


STEPS = (
    _without(
        "Diracs instead of blurred atoms",
        FREQUENCIES_ONLY,
        max_width=0.0,
        min_start_width=0.0,
        max_start_width=0.0,
    ),
    _without(
        "one width for all atoms, no moments",
        FREQUENCIES_ONLY,
        (ensemble, "descend_gaussians", _descend_one_width),
    ),
    _without(
        "moments are not matched",
        FREQUENCIES_ONLY,
        (mixture, "_with_moments", lambda problem, cost: cost),
    ),
    _without(
        "one mixture, no ensemble",
        FREQUENCIES_ONLY,
        max_members=1,
        min_members=1,
        several_members=1,
    ),
    _without("K atoms per mixture", FREQUENCIES_ONLY, atoms_per_cluster=1),
    _without("poor members are kept", FREQUENCIES_ONLY, poor_member=np.inf),
    _without("members are not repaired", FREQUENCIES_ONLY, repair_above=np.inf),
    _without("no stages", FREQUENCIES_ONLY, first_stage_reach=np.inf),
    _without("particles stay where they are drawn", FREQUENCIES_ONLY, particle_steps=0),
    _without(
        "descents in units of sigma",
        FREQUENCIES_ONLY,
        (Parametrisation, "of_gaussians", _plain_units),
    ),
    _without("descents in float64", FREQUENCIES_ONLY, max_single_turns=0.0),
    _without(
        "no search for separate clusters",
        FREQUENCIES_ONLY,
        (recovery, "_separate_clusters", lambda *_: None),
    ),
    _without(
        "that search replaces no atoms",
        FREQUENCIES_ONLY,
        patience=0,
        floor_patience=0,
        atoms_per_floor_patience=NEVER,
    ),
    _without(
        "outliers are not reconstructed",
        ("heavy",),
        (Problem, "without_outliers", lambda problem: problem),
    ),
    _without("atoms near a change are not descended first", FREQUENCIES_ONLY, max_near_share=0.0),
    _without(
        "centroids placed on centres alone",
        KINDS,
        (density, "place_from_few", _place_on_few),
        (density, "place_on_atoms", _place_on_few),
    ),
    _without(
        "centroids placed on points alone",
        KINDS,
        (density, "place_from_few", _place_on_many),
        (density, "place_on_atoms", _place_on_many),
    ),
    _without(
        "points only refine centroids",
        (*FREQUENCIES_ONLY, "pool", "stale"),
        (density, "place_on_atoms", density.place_from_few),
    ),
    _without("no breathing", KINDS, (breathing, "breathe", lambda points, best, *_: best)),
    _without("no doubt", FREQUENCIES_ONLY, (density, "compare_members", lambda *_: Doubt())),
    _without(
        "the pool is no start",
        ("pool",),
        (recovery, "make_prior", lambda problem, rows: _make_prior(problem, None)),
    ),
    _without("the pool is a start alone", ("pool",), trusted_rows_per_cluster=NEVER),
    _without("rows of the pool are not moved", ("pool",), row_steps=0),
    _without("known outliers stay in the sketch", ("pool",), known_probability=2.0),
    _without("cells are always trusted", ("cells", "stale"), suspect_residual=np.inf),
    _without(
        "cells are never trusted",
        ("cells", "stale"),
        certified_residual=-1.0,
        suspect_residual=-1.0,
    ),
    _without("one draw from the cells", ("cells",), drawn_points_per_cluster=0),
    _without("no doubt about cells", ("cells",), (density, "_doubt_of_cells", lambda *_: Doubt())),
)

# Constants that no SSE depends on here, and where they are measured.
ELSEWHERE: Mapping[str, tuple[str, ...]] = {
    "coordinates that hardly matter for distances (`benchmarks/tables.py`)": (
        "drawn_points",
        "few_draws",
        "even_points",
        "max_points_per_row",
        "few_tolerance",
        "min_resolved_phase",
        "max_regression_distance",
    ),
    "private releases (`benchmarks/privacy.py`)": (
        "noised_searches",
        "max_noise_excess",
        "max_noise_displacement",
    ),
    "statuses alone (`benchmarks/statuses.py`)": (
        "rounding_share",
        "regret_steps",
        "regret_points",
        "regret_points_per_cluster",
        "max_regret",
        "max_cell_regret",
        "max_disagreement",
        "max_fitted_share",
        "moved_variance_ratio",
        "moved_limit",
        "max_unseen_ratio",
        "max_unseen_share",
        "starved_share",
        "max_starved_known_share",
        "merged_difference",
        "max_scale_ratio",
        "min_resolved_variance",
        "max_residual",
        "max_noise_ratio",
        "min_frequencies_per_coordinate",
        "wide_cell",
        "max_wide_share",
    ),
    "all numbers of clusters at once, and scattered rows (`benchmarks/curve.py`)": (
        "fewest_atoms_per_cluster",
        "max_variance_error",
        "max_total_variance_error",
    ),
    "decoding on a GPU (`benchmarks/gpu_decode.py`)": (
        "min_gpu_pairs",
        "gpu_threads",
        "gpu_block_pairs",
        "min_gpu_placing_pairs",
        "many_atoms",
    ),
    "hundreds of clusters (`benchmarks/cells.py`)": (
        "many_clusters",
        "many_points_per_cluster",
        "many_drawn_points_per_cluster",
        "max_drawn_numbers",
        "many_steps",
        "many_momentum",
    ),
    "few cells per cluster, and 50 towns on a map (`benchmarks/quality.py --rivals`)": (
        "several_clusters",
        "several_members",
        "several_ensemble_work",
        "several_points_per_cluster",
        "several_placing_runs",
        "agreeing_error",
        "few_means_per_cluster",
    ),
    "pools that hold few distinct rows (`benchmarks/statuses.py`)": (
        "max_unseen_weight",
        "exact_residual",
    ),
    "many tight groups (`benchmarks/statuses.py`)": (
        "outer_share",
        "min_outer_frequencies",
        "max_outer_frequencies",
        "min_level",
        "min_outer_noise",
        "tight_groups_per_cluster",
        "atoms_per_tight_group",
        "max_tight_share",
        "max_tight_cost",
        "tight_limit",
        "min_hidden_share",
        "min_hidden_level",
    ),
    "structured frequencies and very large sketches (`benchmarks/structured.py`)": (
        "min_transform_columns",
        "max_single_entries",
    ),
    "given centroids, and models with another max_iter": (
        "placing_iterations",
        "start_preference",
    ),
    "the paper's decoder (`benchmarks/clompr_quality.py`)": (
        "ascent_steps",
        "clompr_steps",
        "clompr_slope",
    ),
}
# The kinds of sketches that constants matter to, where it is not `FREQUENCIES_ONLY`.
KINDS_OF: Mapping[str, tuple[str, ...]] = {
    "bulk_reach": ("heavy",),
    "negligible_variance": ("heavy",),
    "clear_detection": ("heavy",),
    "large_variance": ("heavy",),
    "max_tail_exponent": ("heavy",),
    "group_mean": ("heavy",),
    "group_gap": ("heavy",),
    "spread_start": ("heavy",),
    "spread_points": ("heavy",),
    "row_steps": ("pool",),
    "trusted_rows_per_cluster": ("pool",),
    "start_rows_per_cluster": ("pool",),
    "known_probability": ("pool",),
    "max_known_share": ("pool",),
    "certified_residual": ("cells", "stale"),
    "suspect_residual": ("cells", "stale"),
    "max_widening": ("cells", "stale"),
    "max_widening_small": ("cells", "stale"),
    "cell_noise_ratio": ("cells", "stale"),
    "drawn_points_per_cluster": ("cells",),
    "placing_points": (*FREQUENCIES_ONLY, "cells"),
    "placing_points_per_cluster": (*FREQUENCIES_ONLY, "cells"),
    "usual_placing_runs": (*FREQUENCIES_ONLY, "cells"),
    "max_placing_runs": (*FREQUENCIES_ONLY, "cells"),
    "few_clusters_times_runs": (*FREQUENCIES_ONLY, "cells"),
    "many_clusters_times_runs": (*FREQUENCIES_ONLY, "cells"),
    "refined_runs": (*FREQUENCIES_ONLY, "cells"),
}


def constants() -> list[Change]:
    """Return every constant at half and at twice its value; whole numbers stay at least one."""
    elsewhere = {name for names in ELSEWHERE.values() for name in names}
    changes = []
    for constant in fields(Settings):
        if constant.name in elsewhere:
            continue
        value = getattr(DEFAULT, constant.name)
        for factor, word in ((0.5, "half"), (2.0, "twice")):
            changed = factor * value if isinstance(value, float) else max(1, int(factor * value))
            if changed != value:
                changes.append(
                    Change(
                        f"{constant.name}, {word}",
                        KINDS_OF.get(constant.name, FREQUENCIES_ONLY),
                        replace(DEFAULT, **{constant.name: changed}),
                        constant=constant.name,
                        factor=factor,
                    )
                )
    return changes
