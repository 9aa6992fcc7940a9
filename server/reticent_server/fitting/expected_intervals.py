# SPDX-License-Identifier: Apache-2.0
"""Will there be intervals? Which coefficients of a planned fit are expected to have one: the
reply's own tests on what is forecast.

A reply gives an interval where the releases resolve the coefficient, its noise is not too large a
multiple of its sampling error, the fit has settled, and, with several rows a person, there are
persons enough and the Jacobian is above its noise (fitting.trust). Plans, the search for a width, a
dry run and the simulator ask here, so that no width is promised where no interval will come.
"""

import numpy as np
from numpy.typing import NDArray

from reticent_server.fitting import trust
from reticent_server.fitting.budget import FitBudget, Sizes
from reticent_server.fitting.forecast import Forecast
from reticent_server.fitting.person_scores import SKEWED_SURE, SURE, Lengths
from reticent_server.fitting.trust.thresholds import EXPECTED_NOISE
from reticent_server.mechanisms.noisy_sum import noise_sd

_HIDDEN = 0.83
"""Of the most that cannot be distinguished from none: what is cut in simulations of panels of 545
to 8,000 persons of 4 or 8 rows at epsilon 1 to 8 is .7 to 1."""

NO_INTERVALS = (
    "No intervals are expected at this epsilon: the noise would be too large a part of what "
    "standard errors are made of. A larger "
    "epsilon or fewer terms would help."
)


def expected_intervals(
    fit: Forecast, sizes: Sizes, budget: FitBudget, *, declined: bool
) -> NDArray[np.bool_]:
    """(q,) whether each coefficient is expected to have an interval. declined: the model gives none
    on this table, by public facts."""
    if declined or not (fit.settled and fit.told) or not _persons_suffice(fit, sizes, budget):
        return np.zeros_like(fit.estimable)
    sampling, ratios = np.ones_like(fit.ratios), EXPECTED_NOISE.value * fit.ratios
    if fit.allowance is None:
        return trust.coefficients(fit.estimable, ratios, sampling).estimable
    return trust.cut_coefficients(fit.estimable, ratios, sampling).estimable


def _persons_suffice(fit: Forecast, sizes: Sizes, budget: FitBudget) -> bool:
    """The test of the reply, where scores are summed by person first; else errors are of rows."""
    if sizes.person_rows == 1:
        return True
    clipped = expected_clipped(sizes, budget)
    return trust.persons(_persons(sizes), clipped, fit.unsure).intervals


def expected_clipped(sizes: Sizes, budget: FitBudget) -> float:
    """The share of persons whose sum is expected to be clipped: of the histogram of lengths as many
    as its noise hides.

    The clip is the first edge beyond which no more are seen than _HIDDEN of `sure` standard
    deviations of the noise of so many bins.
    """
    lengths = Lengths(sizes.person_length)
    sd = noise_sd(lengths.part(budget.lengths, sizes.person_rows))
    sure = SKEWED_SURE if sizes.skewed else SURE
    beyond = int(np.sum(lengths.edges > lengths.unit))
    return float(_HIDDEN * sure * sd * np.sqrt(beyond) / _persons(sizes))


def _persons(sizes: Sizes) -> float:
    return sizes.n / sizes.person_rows
