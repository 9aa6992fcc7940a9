# SPDX-License-Identifier: Apache-2.0
"""Where influences on a jump are cut, and whether that may be believed: post-processing of numbers
of records beyond lengths (fitting.row_tail), released by sign, and of residuals by side and sign.

*What a cut takes.* Of influences of one sign it takes E, so it moves the jump by the difference of
two E, no more than the larger one. That is allowed for. E follows from the curve that row_tail
fits, whose bend is a prior's where noise hides the tail; so it is taken to be no less than
LEAST_EXCESS of what a power law with the slope that residuals have where they are seen would leave
beyond the cut.

*Whether it is believed.* A skewed tail on one side of the cut-off is diluted in the influences, and
a prior told it from nothing: at n = 10,000 and ε = 1 intervals of Pareto tails of index 1.5 to 3
covered .4 to .9. Residuals of one side and sign show it: over the last factor of four above their
noise the number of normal ones falls with a slope of 2 and more, of exponential ones 1.3 to 2, of
these .6 to 1.3.
"""

from dataclasses import dataclass, replace
from math import hypot, log

import numpy as np

from reticent_server.domain.steps import FloatArray, Released
from reticent_server.fitting.row_tail import LengthGrid, RowCut, chosen_cut
from reticent_server.fitting.trust.thresholds import RESOLVED

SIGNS, SIDES_AND_SIGNS = 2, 4
"""Lines of numbers: of influences, and of residuals."""
LEAST_EXCESS = 0.7  # of a power law's: 1 widens intervals by a tenth, without need in simulations
_FACTOR, _BULK = 4.0, 0.25  # of the number at the last edge; of the residuals of a line
_RECORDS, _FEW = 400.0, 0.04  # beyond the last edge, and of a line, where noise is less
_LEAST_SLOPE = 1.1  # of a power law, beyond which what is left has no end


@dataclass(frozen=True, slots=True)
class ResidualTails:
    """slope: of the slowest of the lines that are clear of noise; upper: the same with a standard
    deviation added to each; both None where none is clear. seen: the share of the residuals from
    which on noise hides them.
    """

    slope: float | None
    upper: float | None
    seen: float


def residual_tails(grid: LengthGrid, released: Released, count: float) -> ResidualTails:
    """From the numbers of residuals by side and sign. count: of all."""
    slopes = []
    for line in lines_of(released, SIDES_AND_SIGNS):
        N, cov = grid.beyond(line)
        found = _slope(grid.edges, N, np.sqrt(np.diag(cov)), count / SIDES_AND_SIGNS)
        slopes += [] if found is None else [found]
    return ResidualTails(
        slope=min((slope for slope, _ in slopes), default=None),
        upper=min((slope + sd for slope, sd in slopes), default=None),
        seen=hidden_share(released.sd, count),
    )


def hidden_share(sd: float, count: float) -> float:
    """The noise of numbers beyond a length, of released values of that deviation, over `count`."""
    grid = LengthGrid(1.0)
    _, cov = grid.beyond(Released(np.zeros(len(grid.edges)), sd))
    return float(np.sqrt(cov.max())) / max(count, 1.0)


def signed_cut(
    grid: LengthGrid, released: Released, count: float, rank: float, slope: float | None
) -> RowCut:
    """The cut of influences of both signs, beyond which `rank` are. slope: of residuals. excess is
    what the cut may move the jump by; alpha that of the heavier sign, 0 where noise hides one.
    """
    cuts = [chosen_cut(grid, line, count / SIGNS, rank / SIGNS) for line in lines_of(released, 2)]
    return replace(
        cuts[0],
        length=max(cut.length for cut in cuts),
        beyond=sum(cut.beyond for cut in cuts),
        alpha=min(cut.alpha for cut in cuts),
        excess=max(max(cut.excess, _power_law(cut, slope)) for cut in cuts),
        bulk=None,
    )


def _slope(
    edges: FloatArray, N: FloatArray, sd: FloatArray, count: float
) -> tuple[float, float] | None:
    """−d ln N/d ln e to the last edge that is clear of its noise and that enough records are
    beyond, from the last beyond which are four times as many, or a quarter of the line's `count`;
    and its standard deviation. None where two edges are not clear.
    """
    enough = np.maximum(RESOLVED.value * sd, min(_RECORDS, _FEW * count))
    last = int(np.argmax(np.append(enough >= N, True))) - 1
    if last < 1:
        return None
    first = int(np.sum(min(_FACTOR * N[last], _BULK * count) < N[:last])) - 1
    first = max(first, 0)
    steps = log(edges[last] / edges[first])
    unsure = [hypot(sd[i] / N[i], N[i] ** -0.5) for i in (first, last)]
    return log(N[first] / N[last]) / steps, hypot(*unsure) / steps


def lines_of(released: Released, lines: int) -> list[Released]:
    """Each line's numbers by themselves."""
    return [Released(values, released.sd) for values in released.values.reshape(lines, -1)]


def _power_law(cut: RowCut, slope: float | None) -> float:
    """What is beyond a cut where numbers go on to fall with a slope."""
    if slope is None:
        return 0.0
    return LEAST_EXCESS * cut.beyond * cut.length / (max(slope, _LEAST_SLOPE) - 1)
