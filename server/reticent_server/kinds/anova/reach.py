# SPDX-License-Identifier: Apache-2.0
"""How far the range of an analysis of variance reaches: a compromise of noise and clipping.

Noise of a group's mean grows with the range; beyond it, records say nothing of where they are. With N
records a group, values of a normal law clipped at r of its standard deviations, and noise η of a
group's sum in half-widths, a shift δ of one group moves its mean by g(r)δ, g(r) = 2Φ(r) − 1, against
the variance

    V(r) = v(r)/N + (rη/N)²,   v(r) = g(r) − 2rφ(r) + 2r²(1 − Φ(r)) (of the clipped values),

and r is the one with the largest g²/V. It is a function of public facts: at most REACH, where sampling
prevails, and at least LEAST_REACH. Under the hypothesis of one law the clipped means are equal, too.
"""

import numpy as np
from scipy.special import ndtr

from reticent_server.kinds.shared.ranges import REACH

LEAST_REACH = 1.65
"""Standard deviations of a normal column: to its 5 and 95 % quantiles, which profiles release. A
range within them would rest on no released figure."""
_REACHES = np.linspace(LEAST_REACH, REACH, 32)
"""Tried, in steps of a twentieth: V is flat around its least value."""


def reach(records: float, noise: float) -> float:
    """r for a group of so many records, with the noise η of its centred sum in half-widths."""
    r = _REACHES
    slope = 2 * ndtr(r) - 1
    density = np.exp(-(r**2) / 2) / np.sqrt(2 * np.pi)
    variance = slope - 2 * r * density + 2 * r**2 * ndtr(-r)
    error = variance / records + (r * noise / records) ** 2
    return float(r[np.argmax(slope**2 / error)])
