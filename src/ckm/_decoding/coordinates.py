"""The coordinates that a decoder works in: differences from the sketch's origin, in steps.

A step is one standard deviation of a cluster, along each column in the unit of that column. If
columns are standardised, the frequencies were drawn for the standard deviations of a sample of the
rows, and the sketch knows those of all rows exactly: distances are measured by these.
"""

from dataclasses import dataclass

import numpy as np

from ckm._core.categories import pooled_variances
from ckm._core.frequencies import MAX_UNIT, MIN_UNIT
from ckm._core.preparation import categories_of
from ckm._core.sketch import Sketch
from ckm._util.arrays import FloatArray

# Largest ratio of the unit of a column to that of the design in these coordinates. Beyond it a few
# outliers make the standard deviation, and the frequencies would see nothing of the other rows.
MAX_STRETCH = 30.0
# Bits of a standard deviation, of the 53 that a number has.
UNIT_BITS = 32


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Points of the data relative to an origin, in multiples of a step.

    Parameters
    ----------
    origin : float64 array (n,)
        What is subtracted.
    step : float64 array (n,)
        What differences are divided by.
    stretch : float64 array (n,)
        The step of the design, in multiples of `step`.
    """

    origin: FloatArray
    step: FloatArray
    stretch: FloatArray

    @classmethod
    def of_design(cls, sketch: Sketch) -> "Coordinates":
        """Those in the units that the frequencies were drawn for."""
        frequencies = sketch.frequencies
        return cls(frequencies.origin, frequencies.step, np.ones(frequencies.n))

    @classmethod
    def exact(cls, sketch: Sketch) -> "Coordinates":
        """Those in the standard deviations of all rows, if columns are standardised.

        Of rows that are projected, the axes stay those of the design.
        """
        frequencies = sketch.frequencies
        if frequencies.units is None or not sketch.count:
            return cls.of_design(sketch)
        exact = exact_units(sketch)
        assert exact is not None
        ratio = np.clip(exact / frequencies.units, 1 / MAX_STRETCH, MAX_STRETCH)
        return cls(frequencies.origin, frequencies.step * ratio, 1 / ratio)

    def relative(self, points: FloatArray) -> FloatArray:
        """Points of the data (..., n) in these coordinates."""
        return np.asarray((points - self.origin) / self.step)

    def absolute(self, points: FloatArray) -> FloatArray:
        """Points in these coordinates (..., n) as those of the data."""
        return np.asarray(self.origin + self.step * points)


def exact_units(sketch: Sketch) -> FloatArray | None:
    """The standard deviation of each column of the data over all rows (n_features,), if columns are
    standardised; that of the design where a column is constant, or if columns have robust units or
    public ones.
    """
    units = sketch.frequencies.column_units
    preparation = sketch.frequencies.preparation
    is_robust = preparation is not None and preparation.is_robust
    is_public = sketch.frequencies.bounds is not None
    if units is None or not sketch.count or is_robust or is_public:
        return units
    covariance = sketch.covariance
    variances = covariance if covariance.ndim == 1 else np.diag(covariance)
    # The last bits of moments depend on the order of rows.
    pooled = pooled_variances(np.maximum(variances, 0.0), categories_of(preparation))
    deviations = _rounded(np.sqrt(pooled))
    return np.clip(np.where(deviations > 0, deviations, units), MIN_UNIT, MAX_UNIT)


def _rounded(values: FloatArray) -> FloatArray:
    """Positive numbers with their leading bits alone."""
    mantissas, exponents = np.frexp(values)
    return np.asarray(np.ldexp(np.rint(np.ldexp(mantissas, UNIT_BITS)), exponents - UNIT_BITS))
