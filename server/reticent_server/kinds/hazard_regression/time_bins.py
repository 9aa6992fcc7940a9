# SPDX-License-Identifier: Apache-2.0
"""The step that tests whether hazards are proportional: scores by bins of time, at the end of a
fit of a partial likelihood (proportionality).
"""

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from reticent_server.domain.steps import FloatArray, Released, Step, SumStep, VectorSum
from reticent_server.fitting.row_tail import RowCut
from reticent_server.fitting.standard_fit import StandardFit
from reticent_server.fitting.whole_newton import Whole
from reticent_server.kinds.hazard_regression.person_passes import PersonPasses, model_of
from reticent_server.kinds.hazard_regression.proportionality import (
    BinnedScoresMap,
    BinnedSlopes,
    bin_events,
    binned_slopes,
    time_bins,
)

_SHORT, _LONG = 0.9, 0.99  # of public persons, by the lengths of whose scores cuts are compared
_TINY = 1e-12  # of what is divided by


@dataclass(frozen=True, slots=True, eq=False)
class TimeBins:
    """bins: how many; rho: of the step (RHO_UNITS)."""

    over: PersonPasses
    bins: int
    rho: int

    def scores(
        self, whole: Whole, fit: StandardFit
    ) -> Generator[Step, tuple[Released, ...], BinnedSlopes]:
        """The scores by bins of time after the last step, cut as the whole ones are: a cut that as
        many public persons' are beyond.
        """
        place, k, count = whole.place, self.over.sizes.size, whole.place.state.count
        model = model_of(place)
        ends = time_bins(model.risk, self.bins)
        pieces = model.binned(place.direction, place.score, ends)
        longer = _longer(pieces, whole.cuts.score)
        clip, B = whole.cuts.score.length * longer, len(ends)
        part = VectorSum(B * k, clip, self.rho, self.over.unit_rows)
        here = self.over.map(place)
        binned = BinnedScoresMap(
            here.coding, here.columns, here.point, here.known, here.far, tuple(ends.tolist())
        )
        (released,) = yield SumStep("proportional hazards", (part,), binned)
        H, back = whole.curvature.H, np.linalg.inv(whole.place.model.whitening.transform)
        Q = count**2 * H @ back.T @ fit.sampling @ back @ H
        cut = whole.cuts.score
        taken = whole.score.leaning(k, cut.beyond / count) * cut.excess * longer
        shares = model.shares(place.direction, ends)
        events = bin_events(model.risk, ends)
        return binned_slopes(released, (ends, events), shares, (count * H, Q), taken)


def _longer(pieces: FloatArray, cut: RowCut) -> float:
    """By how much the vectors of all pieces (B, k, rows) are longer than their sums, where
    public persons' are as long as the cut, or their longest hundredth.
    """
    sums = np.linalg.norm(pieces.sum(axis=0), axis=0)
    whole = np.linalg.norm(pieces, axis=(0, 1))
    share = float(np.clip(np.mean(sums < cut.length), _SHORT, _LONG))
    both = (np.quantile(x, share) for x in (whole, sums))
    longer, length = both
    return max(1.0, float(longer / max(length, _TINY)))
