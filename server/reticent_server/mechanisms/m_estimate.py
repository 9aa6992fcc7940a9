# SPDX-License-Identifier: Apache-2.0
"""One-dimensional M-estimation by the exponential mechanism, on a public grid of cells.

Domain: one column of n records, whatever they hold; unit a row. Output: one of `cells` public
candidates. Tier: unconditional, pure: δ = 0.

Candidates θ_k are the middles of cells of equal mass under a public base: uniform on [lower,
upper], or the Cauchy law with these quartiles, candidates beyond the column's bounds being brought
to them. One is drawn with probability ∝ exp(−ε|S(θ_k)|/(4K)), S(θ) = Σ ψ_c(x_i − θ), with Huber's
ψ_c and K = c its bound.

Proof. Replacing a record changes S(θ) by at most 2K at every θ, so |S(θ_k)| d/(2K) changes by at
most d, and so do its whole parts, the candidates' levels. By mechanisms.selection the draw is
bounded-range with parameter 2L(d) ≤ ε, for any candidates: ε-DP, and ε²/8-zCDP. Chaudhuri & Hsu
(2012, §5.2) print 2K in place of 4K, which is ε-DP only up to a factor 2: on D = {0, 0, 2, 2, 2000,
2000} against {0, 2, 2, 2000, 2000, 2000} with c = 1 the log-ratio at θ = 1 is 1.998 ε.

Records, c and candidates are rounded to a lattice of c/2¹⁶ first, each by itself, so S and the
levels are exact whole numbers (numerics.huber_sums). Every candidate can be drawn on every table,
whatever c, ε and the bounds are: there is no piece between records whose width a uniform number
would have to fill. The time of a draw depends on n and the number of cells.

Errors: none that depend on the data. Source: Chaudhuri & Hsu (2012).
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from reticent_server.accounting.conversions import rho_of_bounded_range
from reticent_server.domain.columns import MEstimate
from reticent_server.domain.cost import EPSILON_UNITS, PrivacyCost
from reticent_server.domain.private import Private
from reticent_server.domain.steps import FloatArray, Released
from reticent_server.mechanisms import selection
from reticent_server.mechanisms.selection import Ladder
from reticent_server.numerics.huber_sums import huber_sums
from reticent_server.numerics.lattices import to_lattice

IntArray = NDArray[np.int64]


def cost(part: MEstimate) -> PrivacyCost:
    """(ε, 0), and ε²/8-zCDP."""
    return PrivacyCost(part.epsilon, 0, rho_of_bounded_range(part.epsilon))


def ladder(part: MEstimate) -> Ladder:
    """d levels for 2K, at L(d) ≤ ε/2."""
    return selection.ladder_of_loss(part.epsilon / EPSILON_UNITS / 2)


@lru_cache(maxsize=16)
def candidates(part: MEstimate) -> FloatArray:
    """(cells,) θ_k in the units of the data, not decreasing; read-only."""
    share = (np.arange(part.cells) + 0.5) / part.cells
    if part.base == "uniform":
        points = part.lower + share * (part.upper - part.lower)
    else:
        half = (part.upper - part.lower) / 2
        points = part.lower + half + half * np.tan(np.pi * (share - 0.5))
    points = np.clip(points, *part.limits)
    points.flags.writeable = False
    return points


def levels(part: MEstimate, values: FloatArray) -> IntArray:
    """⌊|S(θ_k)| d/(2K)⌋ (cells,) of a column (n,): private."""
    x, points = (to_lattice(part.lattice, v).astype(np.int64) for v in (values, candidates(part)))
    size = np.abs(huber_sums(x, part.c, points))
    whole, rest = np.divmod(size, 2 * part.c)
    steps = ladder(part).steps
    return np.asarray(whole * steps + rest * steps // (2 * part.c))


def release(part: MEstimate, values: Private[FloatArray]) -> Released:
    """One of the candidates."""
    candidate_levels = Private(levels(part, values.unwrap()[0]))
    chosen = selection.select(candidate_levels, ladder(part))
    return Released(candidates(part)[chosen : chosen + 1].copy(), 0.0)
