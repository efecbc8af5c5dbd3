"""The problem that a sketch poses: find a mixture of atoms with the sketch z (equation 4).

Coordinates are relative to the sketch's origin and in units of sigma, so that decoding does not
depend on the location or the units of the data.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ckm._core import nested
from ckm._core.frequencies import Frequencies
from ckm._core.laws import COARSE_RATIO, determines_centroids
from ckm._core.moments import SecondMoment
from ckm._core.sketch import Sketch
from ckm._decoding.cells import CellMeasure
from ckm._decoding.coordinates import Coordinates
from ckm._decoding.moments import detectable_columns, min_rows_of_variance, round_moments
from ckm._decoding.objective import Objective, atoms, blur
from ckm._decoding.objective_cpu import CpuObjective
from ckm._decoding.objective_panels import PanelObjective
from ckm._decoding.operator import Omega, omega_of
from ckm._decoding.settings import DEFAULT, Settings
from ckm._util.arrays import BoolArray, ComplexArray, FloatArray


@dataclass(frozen=True, eq=False)
class Problem:
    """Find atoms whose mixture has the sketch z.

    Parameters
    ----------
    omega : Omega
        The frequencies times sigma, as an operator.
    z : complex array (m,)
        The data's sketch.
    lower, upper : float64 arrays (n,)
        The box that contains the data.
    mean : float64 array (n,)
        The data's mean.
    covariance : SecondMoment
        The data's covariance, full or diagonal.
    size : float
        The number of rows.
    trusted : bool array (n,)
        The columns whose moments a mixture should match. The moments of the others may be due to
        outliers below the sketch's detection limit.
    pilot_variances : float64 array (n,) or None
        The variance along each axis in the pilot sample, which hardly contains such outliers.
    device : torch.device or None
        The GPU that evaluates mixtures; None for the CPU.
    settings : Settings
        The decoder's tuned constants.
    cells : CellMeasure or None
        What the sketch's cells say, if it has some.
    axes : float64 array (d, n) or None
        Of nested frequencies, the numbers that the first of them are a sketch of.
    noise_variance : float
        For a private release, E |noise|^2 of the noise that was added to each number of z.
    coordinates : Coordinates or None
        What these coordinates are in the data's; None for a problem that is of no sketch.
    """

    omega: Omega
    z: ComplexArray
    lower: FloatArray
    upper: FloatArray
    mean: FloatArray
    covariance: SecondMoment
    size: float
    trusted: BoolArray
    pilot_variances: FloatArray | None = None
    device: Any = None
    settings: Settings = DEFAULT
    cells: CellMeasure | None = None
    noise_variance: float = 0.0
    axes: FloatArray | None = None
    coordinates: Coordinates | None = None

    @classmethod
    def of(
        cls,
        sketch: Sketch,
        device: Any = None,
        settings: Settings = DEFAULT,
        coordinates: Coordinates | None = None,
    ) -> "Problem":
        """The problem that a sketch poses, in the units of its design or in other coordinates."""
        frequencies = sketch.frequencies
        if frequencies.projection is not None:
            settings = settings.of_wide_rows()
        within = Coordinates.of_design(sketch) if coordinates is None else coordinates
        lower = within.relative(sketch.lower)
        upper = within.relative(sketch.upper)
        mean, covariance = round_moments(
            within.relative(sketch.projected_mean),
            sketch.central_moment.scaled(within.step),
        )
        # A row of whole-number weight counts as that many rows.
        size = max(sketch.count, sketch.weight)
        m = len(sketch.z)
        trusted = detectable_columns(lower - mean, upper - mean, covariance, size, m, settings)
        spread = frequencies.spread
        if sketch.release is not None:
            # Moments say where to start, no more.
            trusted = np.zeros(frequencies.n, bool)
            spread = None
        return cls(
            omega=omega_of(frequencies, settings, within.step),
            z=sketch.z,
            lower=lower,
            upper=upper,
            mean=mean,
            covariance=covariance,
            size=size,
            trusted=trusted,
            coordinates=within,
            pilot_variances=(
                None if spread is None else spread / frequencies.scale * within.stretch**2
            ),
            device=device,
            settings=settings,
            cells=CellMeasure.of(sketch, within),
            axes=_axes_of(frequencies),
            noise_variance=0.0 if sketch.release is None else sketch.release.feature_variance,
        )

    @property
    def m(self) -> int:
        """The number of frequencies."""
        return len(self.z)

    @property
    def n(self) -> int:
        """The dimension."""
        return self.omega.shape[1]

    def can_stand_alone(self, K: int) -> bool:
        """Whether there are enough frequencies to decode K clusters without cells."""
        return self.m >= self.settings.min_frequencies_per_coordinate * K * self.n

    def determines(self, K: int) -> bool:
        """Whether there are at least as many numbers as K centroids have. With fewer, frequencies
        can only judge cells.
        """
        return determines_centroids(self.m, K, self.n)

    @cached_property
    def objective(self) -> Objective:
        """The cost of mixtures against this sketch, on the CPU or on the problem's GPU."""
        return CpuObjective(self.omega, self.z) if self.device is None else self._on_gpu()

    @cached_property
    def rough_objective(self) -> Objective:
        """The same cost in float32, for descents whose end does not have to be exact; the objective
        itself where float32 phases would be too coarse or the matrix too large.
        """
        settings = self.settings
        reach = np.maximum(np.abs(self.lower), np.abs(self.upper))
        turns = np.sqrt(self.omega.squared_norms.max() * (reach @ reach)) / (2 * np.pi)
        if turns > settings.max_single_turns or self.m * self.n > settings.max_single_entries:
            return self.objective
        if self.device is None:
            return PanelObjective(self.omega.in_single, self.z)
        return self._on_gpu(in_single=True)

    def _on_gpu(self, *, in_single: bool = False) -> Objective:
        from ckm._decoding.objective_gpu import GpuObjective

        pairs = self.settings.gpu_block_pairs
        return GpuObjective.of(self.z, self.omega.turns, self.device, pairs, in_single=in_single)

    @cached_property
    def noise(self) -> float:
        """The noise floor: the expected |z - E z|^2 of a sample of N rows, sum_j (1 - |z_j|^2) / N,
        and of the noise of a private release.

        A cost at this floor leaves nothing to explain.
        """
        chance = float(np.maximum(1 - np.abs(self.z) ** 2, 0).sum() / self.size)
        return chance + self.m * self.noise_variance

    @property
    def is_noised(self) -> bool:
        """Whether the sketch is a private release."""
        return self.noise_variance > 0

    @cached_property
    def has_trusted_moments(self) -> bool:
        """Whether the moments of every column can be trusted."""
        return bool(self.trusted.all())

    @property
    def detection_limit(self) -> int:
        """The number of rows that, in one place, would hardly escape the sketch."""
        return max(2, int(self.settings.clear_detection * np.sqrt(self.size / self.m)))

    @cached_property
    def stages(self) -> "tuple[Problem, ...]":
        """The problem from coarse to fine: with the frequencies that see the whole data at once,
        then with more, finally with all.

        Where clusters are small beside the data, all frequencies at once are a landscape of narrow
        valleys.
        """
        largest_variance = float(self.covariance.diagonal.max())
        squared_norms = self.omega.squared_norms
        stages = []
        bound = np.inf
        if largest_variance > COARSE_RATIO:
            bound = self.settings.first_stage_reach / largest_variance
        while bound < squared_norms.max():
            kept = squared_norms <= bound
            if kept.sum() >= self.settings.min_stage_frequencies_per_column * self.n:
                stages.append(replace(self, omega=self.omega.only(kept), z=self.z[kept]))
            bound *= self.settings.stage_factor
        return (*stages, self)

    def blur(self, width: float) -> FloatArray:
        """exp(-width |omega_j|^2 / 2), (m,): what a Gaussian of this variance does to an atom."""
        return blur(self.omega, width)

    def without_outliers(self) -> "Problem":
        """The problem in the box of the bulk, if outliers below the detection limit may have made
        some columns' moments and bounds; else the problem itself.
        """
        if self.has_trusted_moments or self.pilot_variances is None:
            return self
        reach = self.settings.bulk_reach * np.sqrt(self.pilot_variances)
        reaches = np.where(self.trusted, np.inf, reach)
        lower = np.maximum(self.lower, -reaches)
        upper = np.minimum(self.upper, reaches)
        return replace(
            self,
            lower=np.minimum(lower, upper),
            upper=upper,
            mean=np.where(self.trusted, self.mean, 0.0),
            covariance=self.covariance.replaced(self.trusted, self.pilot_variances),
        )

    def without(
        self, points: FloatArray, shares: FloatArray, lower: FloatArray, upper: FloatArray
    ) -> "Problem":
        """The problem of the other rows, once some are known: these points, with their shares of
        the weight. The others lie in the box from `lower` to `upper`.
        """
        left = 1 - shares.sum()
        z = (self.z - shares @ atoms(self.omega, points)) / left
        mean = (self.mean - shares @ points) / left
        known = SecondMoment.of_points(points, shares, full=self.covariance.is_full)
        second = self.covariance.plus_outer(self.mean) - known
        covariance = (second / left).minus_outer(mean)
        size = self.size * left
        rows = min_rows_of_variance(lower - mean, upper - mean, covariance, size)
        # Shares of sampled rows are estimates, and may remove more variance than there was.
        is_possible = covariance.diagonal >= 0
        is_trusted = ((rows >= np.sqrt(size / self.m)) & is_possible).all()
        return replace(
            self,
            z=z,
            lower=lower,
            upper=upper,
            mean=mean,
            covariance=covariance,
            size=size,
            trusted=np.full(self.n, is_trusted),
        )


def _axes_of(frequencies: Frequencies) -> FloatArray | None:
    """The axes of nested frequencies, which their seed tells."""
    if frequencies.distribution != nested.NAME or frequencies.seed is None:
        return None
    return nested.nested_axes(frequencies.seed, frequencies.n)
