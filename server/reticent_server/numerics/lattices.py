# SPDX-License-Identifier: Apache-2.0
"""Public lattices for whole columns: records as whole numbers of steps, small enough to be
exact."""

from math import ceil, frexp, ldexp

import numpy as np

from reticent_server.domain.columns import Lattice
from reticent_server.domain.steps import FloatArray

# 2⁴⁰ steps of a column's range: rounding is 10⁻¹² of it
BITS = 40
_LEAST = 2.0**-1074  # the smallest number that float64 has


def lattice_between(lower: float, upper: float, bits: int = BITS) -> Lattice:
    """At most 2^bits steps from lower to upper; the step is the smallest such power of two.

    A column of whole numbers with fewer values than that lies on the lattice exactly.
    """
    width = upper - lower
    if not width > 0:
        return Lattice(lower, 1.0, 0)
    mantissa, exponent = frexp(width)
    step = max(ldexp(1.0, exponent - bits - (mantissa == 0.5)), _LEAST)
    return Lattice(lower, step, ceil(width / step))


def to_lattice(lattice: Lattice, values: FloatArray) -> FloatArray:
    """Whole numbers 0..size as float64, elementwise for values (any shape) in their units; not
    finite is 0."""
    with np.errstate(all="ignore"):
        steps = np.rint((values - lattice.origin) / lattice.step)
        return np.clip(np.where(np.isfinite(steps), steps, 0.0), 0.0, float(lattice.size))
