# SPDX-License-Identifier: Apache-2.0
"""A range for a difference of columns, from a noisy count of shells around its expected middle.

Released quantiles of two columns say little of their difference: of two columns with a correlation
of .9 it is a fifth as wide as they are. One CountSum counts records by |d − c|/W, c the public
middle and W the public half-width: shell 0 is the inner ball, shell j = 1..SHELLS−1 reaches up to
W·RATIO^−(SHELLS−1−j). For each of a few probabilities p whose rank the noise leaves visible, the
released quantile h_p is stretched by REACH/z, z the normal score of |d| at p, as in
kinds.shared.ranges; the range is c ± the largest, cut to the public range.

Privacy: mechanisms.noisy_sum, CountSum (a record is in one shell at most); what follows is
post-processing.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.steps import Block, CountSum, FloatArray, Released
from reticent_server.kinds.shared.groups import ComparedValue
from reticent_server.kinds.shared.ranges import REACH, ClipRange
from reticent_server.numerics.evaluate import in_use

SHELLS = 18  # down to W/362: differences narrower than that are of columns that are all but equal
RATIO = 2**0.5  # a range at most 1.41 times too wide
SHARE = 0.15  # of ρ; half of it left half as many probabilities visible at n = 500, ε = 1
# of |d| at which a normal law is fitted: bulk and tails; the largest range of them is taken
_PROBABILITIES = (0.75, 0.9, 0.975)
_VISIBLE = 3.0  # standard deviations of the noise of a tail of shells


@dataclass(frozen=True, slots=True)
class ShellMap:
    """(rows,) shell of a record in use."""

    design: Design
    value: ComparedValue
    range: ClipRange

    def __call__(self, block: Block) -> tuple[FloatArray, ...]:
        used = in_use(self.design, block)
        with np.errstate(all="ignore"):  # a warning would tell of a cell
            distance = np.abs(self.value.of(block) - self.range.expected)
        shells = np.searchsorted(_reaches(self.range)[:-1], distance).astype(np.float64)
        return (np.where(used & np.isfinite(distance), shells, -1.0),)


def shell_part(facts: DatasetFacts, rho: int) -> CountSum:
    """The count of shells at `rho` (RHO_UNITS)."""
    return CountSum(SHELLS, rho, facts.schema.unit.max_rows)


def narrowed(span: ClipRange, counts: Released) -> ClipRange:
    """The range by the rule above, inside of `span`; `span` where no probability is visible."""
    tails = np.cumsum(counts.values[::-1])[::-1]  # records in this shell and beyond
    total = max(float(tails[0]), 1.0)
    noise = _VISIBLE * counts.sd * np.sqrt(SHELLS)
    ends = [
        float(_quantile(span, tails, (1 - p) * total)) * REACH / float(ndtri((1 + p) / 2))
        for p in _PROBABILITIES
        if (1 - p) * total > noise
    ]
    if not ends:
        return span
    lower = max(span.lower, span.expected - max(ends))
    upper = min(span.upper, span.expected + max(ends))
    return ClipRange(lower, upper, (lower + upper) / 2)


def _quantile(span: ClipRange, tails: FloatArray, beyond: float) -> float:
    """The first reach beyond which there are at most `beyond` records."""
    outside = np.append(tails[1:], 0.0)
    return float(_reaches(span)[np.argmax(outside <= beyond)])


def _reaches(span: ClipRange) -> FloatArray:
    """(SHELLS,) outer radii of the shells, increasing to the farthest end of the range."""
    W = max(span.upper - span.expected, span.expected - span.lower)
    return np.asarray(W * RATIO ** -np.arange(SHELLS - 1.0, -1.0, -1.0))
