# SPDX-License-Identifier: Apache-2.0
"""How far the range of a comparison of groups reaches: a compromise of noise and clipping.

Noise of a group's mean grows with the range; beyond it, records say nothing of where they are. With
N records a group, values of a normal law clipped at r of its standard deviations, and noise η of a
group's sum in half-widths, a shift δ of one group moves its mean by g(r)δ, g(r) = 2Φ(r) − 1,
against the variance

    V(r) = v(r)/N + (rη/N)²,   v(r) = g(r) − 2rφ(r) + 2r²(1 − Φ(r)) (of the clipped values),

and r is the one with the largest g²/(V + b²). b is what clipping takes from the mean of an
exponential tail, ½w·10^(−r/wz), z the normal score of its 95 % quantile, in standard deviations, of
a group that is w = 1.2 times as wide as all together: groups of one mean and unlike tails differ by
that, and a test of many records would find it. It is a function of public facts: at least
LEAST_REACH, and at most MOST_REACH, where sampling prevails: what the usual REACH takes from a
skewed group is then a standard error and more. Under the hypothesis of one law the clipped means
are equal, too.
"""

import numpy as np
from scipy.special import ndtr

from reticent_server.domain.facts import DatasetFacts
from reticent_server.kinds.shared.groups import Groups, mean_noise, moments_part, weight
from reticent_server.kinds.shared.ranges import REACH

LEAST_REACH = 1.65
"""Standard deviations of a normal column: to its 5 and 95 % quantiles, which profiles release. A
range within them would rest on no released figure."""
MOST_REACH = 2 * REACH
"""In the same units: with REACH two lognormal groups of 10,000 with one mean and standard
deviations of 1 and 3 have the level .24 at epsilon = 1, with this .04; a normal law's power there
is .74 for .78.
"""
_WIDER = 1.2
"""w: with 1 the level there is .09, with 1.4 .01 and the power .69."""
_OUTER = 1.645  # the normal score of a 95 % quantile
_REACHES = np.linspace(LEAST_REACH, MOST_REACH, 96)
"""Tried, in steps of a twentieth: V is flat around its least value."""


def reach(records: float, noise: float) -> float:
    """r for a group of so many records, with the noise η of its centred sum in half-widths."""
    r = _REACHES
    slope = 2 * ndtr(r) - 1
    density = np.exp(-(r**2) / 2) / np.sqrt(2 * np.pi)
    variance = slope - 2 * r * density + 2 * r**2 * ndtr(-r)
    error = variance / records + (r * noise / records) ** 2
    taken = _WIDER * 0.5 * 10.0 ** (-r / (_WIDER * _OUTER))
    return float(r[np.argmax(slope**2 / (error + taken**2))])


def groups_reach(facts: DatasetFacts, groups: Groups, rho: int) -> float:
    """r of a Gram sum of these groups at `rho` (RHO_UNITS): of groups of one size, with the mean in
    the middle of the range.
    """
    a = weight(0.0)
    noise = mean_noise(moments_part(facts, groups, a, rho)[0], a, 0.0)
    return reach(facts.n / groups.size, noise)
