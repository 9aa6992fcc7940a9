# SPDX-License-Identifier: Apache-2.0
"""What part of ρ goes to which release of a fit of Cox's partial likelihood: from public sizes
alone."""

from dataclasses import dataclass, replace

from reticent_server.fitting.budget import FitBudget, Signal, Sizes
from reticent_server.fitting.whole_budget import RANK, plan_whole_budget, planned_rank

_ENTRIES = 0.03  # of ρ, where persons come late: when


@dataclass(frozen=True, slots=True)
class _Shares:
    """Of ρ. table: events and numbers at risk; rest: by how much intervals have more events than
    expected; moment: the roots' second moment, by which coordinates are turned; early: gradients of
    the early steps.
    """

    table: float
    rest: float
    moment: float
    early: tuple[float, ...]


_USUAL = _Shares(0.1, 0.03, 0.05, (0.02, 0.02, 0.02, 0.03, 0.05))
"""With those of _CAREFUL intervals of flchain, nafld and nwtco at epsilon = 1 are up to a fifth
wider. A table of .1 of rho costs no width beside one of .04, whose noise moved coefficients (of
melanoma, of rotterdam by age)."""
_CAREFUL = _Shares(0.1, 0.05, 0.06, (0.03, 0.03, 0.03, 0.04, 0.06))
"""Where persons come late, of whom few are at risk at a time, and of a robust fit, whose steps all
have one target: with those of _USUAL its intervals of nafld at epsilon = 3 held .83."""
_STRATA_TABLE = 0.2
"""Of ρ, for the table of follow-up of a fit with strata, whose baselines have few events each: with
.04 and .06 its noise moved the coefficients, and intervals at epsilon = 1 held .90 of 400 (colon by
arm, flchain by sample, nafld by sex); with .12 .94, with .2 .95 at hardly more width."""
_LIKELIHOOD_RANK = 1.2
"""Of a likelihood's cut, in standard deviations of the noise of the last scores: a quarter of the
RANK of other fits, and of a robust one. What a cut takes of a partial likelihood leans one way, as
a martingale residual is 1 at the most and has no least value: long survivors at high risk. With
RANK it was up to 3.7 of Cox's standard errors at epsilon = 3 (pbc)."""
TURN = 1  # the early step at which the roots' second moment is released
_BINS = 0.25  # of ρ, where proportional hazards are tested: the scores by bins of time
SIGNAL = Signal(bound=1.0, curvature=1.0, scaled=False, whole=True, bent=True)


@dataclass(frozen=True, slots=True)
class PartialBudget:
    """ρ (RHO_UNITS) of each release. fit: as of any fit whose last scores are cut as a whole;
    deviations: of noise, the records that the cut leaves beyond it."""

    table: int
    entries: int
    rest: int
    moment: int
    fit: FitBudget
    bins: int = 0
    deviations: float = _LIKELIHOOD_RANK

    @property
    def rho(self) -> int:
        """What all steps cost."""
        beside = self.table + self.entries + self.rest + self.moment
        return beside + self.fit.rho + self.bins

    def rank(self, sizes: Sizes) -> float:
        """How many records the cut of the last scores leaves beyond it."""
        return planned_rank(sizes, self.fit, self.deviations)

    @property
    def shares(self) -> dict[str, int]:
        """ρ by name, beside those of the fit."""
        return {
            "follow_up": self.table + self.entries,
            "baseline": self.rest,
            "moment": self.moment,
            **({"proportionality": self.bins} if self.bins else {}),
        }


def plan_partial_budget(
    sizes: Sizes,
    rho: int,
    *,
    masked: bool,
    late: bool,
    beside: int = 1,
    tested: bool = False,
    robust: bool = False,
) -> PartialBudget:
    """Splits `rho`. sizes: of the slopes; the whitening has `beside` coordinates more: a constant,
    and the strata's indicators."""
    bins = int(rho * _BINS) if tested else 0
    rho -= bins
    of = _CAREFUL if late or robust else _USUAL
    of = replace(of, table=_STRATA_TABLE) if beside > 1 else of
    table, rest, moment = (int(rho * share) for share in (of.table, of.rest, of.moment))
    entries = int(rho * _ENTRIES) if late else 0
    left = rho - table - rest - moment - entries
    wide = replace(sizes, size=sizes.size + beside)
    fit = plan_whole_budget(wide, left, SIGNAL, masked=masked, entries=sizes.size, early=of.early)
    deviations = RANK if robust else _LIKELIHOOD_RANK
    return PartialBudget(table, entries, rest, moment, fit, bins, deviations)
