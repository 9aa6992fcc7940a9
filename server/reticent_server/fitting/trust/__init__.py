# SPDX-License-Identifier: Apache-2.0
"""How far a reply's intervals are to be trusted: every decline, flag and warning, and what decides
it.

A rule takes ratios of an error to what it is an error of, and gives a TrustVerdict: intervals or
none, and the sentences that say why. Thresholds stand in one table (trust.thresholds), each with
its unit, its reason and the figure that chose it. Everything is a function of released or public
values."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.steps import FloatArray
from reticent_server.fitting.trust import thresholds
from reticent_server.fitting.trust import words as say

BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class TrustVerdict:
    """intervals: whether there are any. sentences: what a reader must know."""

    intervals: bool = True
    sentences: tuple[str, ...] = ()

    def then(self, other: "TrustVerdict") -> "TrustVerdict":
        """Both; the first that declines says why."""
        if not self.intervals:
            return self
        if not other.intervals:
            return other
        return TrustVerdict(sentences=(*self.sentences, *other.sentences))

    def applied(self, result: Mapping[str, Any]) -> dict[str, Any]:
        """What changes in a result of q coefficients: their intervals, and its warnings."""
        gone = {} if self.intervals else without_intervals(result)
        return {**gone, "warnings": [*result["warnings"], *self.sentences]}


SOUND = TrustVerdict()


def _declined(*sentences: str) -> TrustVerdict:
    return TrustVerdict(intervals=False, sentences=sentences)


def without_intervals(
    result: Mapping[str, Any], names: Collection[str] | None = None
) -> dict[str, Any]:
    """What changes in a result of which these terms are given without intervals; None: all."""
    kept = [names is not None and term not in names for term in result["terms"]]
    return {
        "estimable": [
            keep and known for keep, known in zip(kept, result["estimable"], strict=True)
        ],
        "confidence_intervals": [
            ends if keep else (None, None)
            for keep, ends in zip(kept, result["confidence_intervals"], strict=True)
        ],
        "p_values": [p if keep else None for keep, p in zip(kept, result["p_values"], strict=True)],
    }


def clear(value: FloatArray | float, noise: FloatArray | float) -> Any:
    """Whether a released value (any shape) is above its noise, whose standard deviation is
    given.
    """
    return value > thresholds.RESOLVED.value * noise


def moments_hold(gate: float) -> bool:
    """Whether errors of first order hold of a formula over noisy second moments; gate: noise over
    the smallest eigenvalue.
    """
    return gate <= thresholds.MOMENTS_GATE.value


def bared(lost: FloatArray) -> BoolArray:
    """(q,) whether a radius takes too much of a column's tail for intervals; lost: of its mean
    square in a doubling.
    """
    return np.asarray(lost >= thresholds.BARED.value)


def skewed(skewness: FloatArray) -> BoolArray:
    """(q,) whether a profile shows that columns may have such a tail
    (fitting.heavy_terms.skewness).
    """
    return np.asarray(skewness >= thresholds.SKEWED.value)


def blocks_tell(noise: FloatArray, spread: FloatArray) -> BoolArray:
    """(m,) whether means of blocks have less noise than the blocks' estimates have spread."""
    return np.asarray(noise < thresholds.BLOCK_NOISE.value * spread)


def dispersed(alpha: float) -> bool:
    """Whether a dispersion is distinguishable from a Poisson law's."""
    return alpha > thresholds.LEAST_DISPERSION.value


def linear_step(off: float, most: float) -> TrustVerdict:
    """Of a fit whose typical predictor is off by so much, where a linear step's standard errors
    hold up to `most`.
    """
    return _declined(say.UNSETTLED) if off > most else SOUND


def information(noise: float) -> TrustVerdict:
    """Of a likelihood of counts or amounts, whose information matrix has this noise relative to
    what is expected.
    """
    return (
        _declined(say.INFORMATION_UNKNOWN) if noise > thresholds.INFORMATION_NOISE.value else SOUND
    )


def strata(noise: float) -> TrustVerdict:
    """Of a hazard regression with a baseline by stratum. noise: of a stratum's events, over the
    mean number in one."""
    return _declined(say.STRATA_UNKNOWN) if noise > thresholds.STRATA_NOISE.value else SOUND


def arrived(chance: float, unlikely: float = thresholds.SURPRISE.value) -> TrustVerdict:
    """Of a fit whose last mean score has this chance, in 0 to 1, where it is as near to its
    solution as it says. unlikely: the chance below which it is not believed to be.
    """
    return _declined(say.NOT_ARRIVED) if chance < unlikely else SOUND


def believed(doubt: float) -> TrustVerdict:
    """Of a fit whose curvature has this chance of being less than what its standard errors rest
    on.
    """
    return _declined(say.CURVATURE_DOUBTED) if doubt > thresholds.DOUBT.value else SOUND


def persons(effective: float, clipped: float, unsure: float) -> TrustVerdict:
    """Of standard errors between persons: their effective number, the share that is clipped, and
    the noise of the Jacobian over its smallest eigenvalue.
    """
    enough = effective >= thresholds.LEAST_PERSONS.value
    whole = clipped <= thresholds.MOST_CLIPPED.value
    known = unsure <= thresholds.JACOBIAN_NOISE.value
    return SOUND if enough and whole and known else _declined(say.FEW_PERSONS)


def few_clusters(present: float) -> TrustVerdict:
    """Of standard errors between so many levels of a public column."""
    return _declined(say.FEW_CLUSTERS) if present < thresholds.LEAST_CLUSTERS.value else SOUND


def few_units(present: float) -> str:
    """What is said of a survey with so few sampling units; empty of enough."""
    return say.FEW_UNITS if present < thresholds.LEAST_CLUSTERS.value else ""


def units_hidden(noise: float) -> str:
    """What is said where so much noise, over what is left, was taken off; empty of less."""
    return say.UNITS_HIDDEN if noise > thresholds.CLUSTER_NOISE.value else ""


def told_from_clusters(noise: FloatArray) -> BoolArray:
    """(q,) whether variances between clusters are worth intervals. noise (q,): as of
    CLUSTER_NOISE.
    """
    return np.asarray(noise <= thresholds.CLUSTER_NOISE.value)


def clusters_hidden(names: Sequence[str]) -> str:
    """What is said of coefficients whose variances are not."""
    return say.CLUSTERS_HIDDEN.format(names=", ".join(names))


def clusters_expected(column: str, noise: float, wider: float) -> str:
    """What a plan says of errors between levels. noise: what is taken off a variance, over that of
    independent rows; wider: standard errors over theirs.
    """
    if noise <= thresholds.CLUSTER_NOISE.value:
        return say.CLUSTERS_TOLD.format(column=column, wider=wider)
    return say.CLUSTERS_NOT_TOLD.format(
        column=column, effect=noise / thresholds.CLUSTER_NOISE.value
    )


def group(eta: float, *, measured: bool, profiled: bool) -> TrustVerdict:
    """Of the fit of one group, whose noise ratio is eta at its released number of records.
    measured: whether its scale is.
    """
    most = thresholds.GROUP_NOISE if profiled else thresholds.GROUP_NOISE_UNPROFILED
    return _declined(say.FEW_IN_GROUP) if measured and eta > most.value else SOUND


def spread(unknown: Sequence[str]) -> TrustVerdict:
    """Of a fit that knows of these columns the median alone."""
    return _declined(say.SPREAD_UNKNOWN.format(columns=", ".join(unknown))) if unknown else SOUND


def tied(share: float) -> bool:
    """Whether medians of what so many equal responses leave jump from value to value."""
    return share >= thresholds.TIED.value


def without_scale(share: float) -> bool:
    """Whether residuals of so many equal responses have no scale."""
    return share >= thresholds.MOST_TIED.value


def robust(share: float) -> TrustVerdict:
    """Of a robust fit of a response of which the share has one value."""
    return _declined(say.TIED_ROBUST) if without_scale(share) else SOUND


def quantiles(share: float) -> TrustVerdict:
    """Of a quantile regression of such a response."""
    return _declined(say.TIED_QUANTILE) if tied(share) else SOUND


def separated(length: float, what: str = "the responses") -> TrustVerdict:
    """Of a binomial or multinomial fit whose slopes of whitened regressors are so long."""
    if not length > thresholds.SEPARATED.value:
        return SOUND
    words = f"A coefficient is so large that {what} may be separated: read it as a direction only."
    return TrustVerdict(sentences=(words,))


def heavy(lost: Mapping[str, float]) -> list[str]:
    """The terms of whose mean square weights take much; lost: the share of each."""
    return [name for name, share in lost.items() if share > thresholds.HEAVY.value]


OF_LINES, OF_MEANS = 'loss="huber", for ', 'target="robust", for '
"""How a target is asked for that few records do not decide, of lines, and of means and hazards."""


@dataclass(frozen=True, slots=True, eq=False)
class CoefficientFlags:
    """estimable: (q,) which coefficients have an interval. noisy: (q,) those whose noise dominates.
    heavy: (q,) those that a few records decide, and sparse: (q,) those that a level of too few
    events decides, where that was asked; eventless: (q,) those that few events decide, of a
    likelihood.
    """

    estimable: BoolArray
    noisy: BoolArray
    heavy: BoolArray | None = None
    eventless: BoolArray | None = None
    sparse: BoolArray | None = None

    @property
    def barred(self) -> BoolArray:
        """(q,) those that a few records or events decide: no test is made of them either."""
        told = [x for x in (self.heavy, self.eventless, self.sparse) if x is not None]
        none = np.zeros_like(self.estimable)
        return np.asarray(np.any(told, axis=0)) if told else none

    def without_sparse(self, sparse: BoolArray | None) -> "CoefficientFlags":
        """Without intervals for what a level of too few events decides (fitting.sparse_levels)."""
        if sparse is None:
            return self
        return replace(
            self, estimable=self.estimable & ~sparse, noisy=self.noisy & ~sparse, sparse=sparse
        )

    def tail_warnings(
        self, names: Sequence[str], share: FloatArray, records: float, instead: str
    ) -> list[str]:
        """Sentences on what a cut takes: share (q,) of the standard errors; records: about how many
        are cut; instead: OF_LINES or OF_MEANS, or nothing where that was asked.
        """
        said = []
        heavy = [] if self.heavy is None else _named(names, self.heavy)
        if heavy:
            said.append(
                f"About {records:.0f} records decide {', '.join(heavy)}: no interval is given. "
                f"Ask for {instead}a logarithm of what has the long tail, or for a "
                "larger epsilon."
            )
        rare = [] if self.eventless is None else _named(names, self.eventless)
        if rare:
            said.append(
                f"Fewer than about {thresholds.LEAST_EVENTS.value:.0f} events decide "
                f"{', '.join(rare)}: no interval is given. Merge rare levels, or take one with "
                "many events as the reference."
            )
        leaning = _named(names, self.estimable & (share > thresholds.CUT_TOLD.value))
        if leaning:
            said.append(
                f"Half or more of the standard errors of {', '.join(leaning)} allows for about "
                f"{records:.0f} "
                "records with the largest scores, which are cut."
            )
        return said

    def warnings(
        self, names: Sequence[str], rare: str = "too rare", *, deviations: bool = False
    ) -> list[str]:
        """Sentences. rare: what is; deviations: whether terms are deviations from a person's
        means.
        """
        said = []
        told = [self.estimable, self.heavy, self.eventless, self.sparse]
        lost = _named(names, ~np.any([x for x in told if x is not None], axis=0))
        if lost:
            said.append(
                f"Not identifiable at this epsilon (collinear, constant or {rare}: the data's "
                "information is "
                f"below the noise): {', '.join(lost)}."
            )
            said += [say.SAME_IN_ALL_ROWS] if deviations else []
        few = [] if self.sparse is None else _named(names, self.sparse)
        said += [say.FEW_EVENTS.format(names=", ".join(few))] if few else []
        loud = _named(names, self.noisy)
        if loud:
            said.append(
                f"Privacy noise dominates the standard errors of {', '.join(loud)}: a larger "
                "epsilon would help."
            )
        return said


def _named(names: Sequence[str], which: BoolArray) -> list[str]:
    return [name for name, chosen in zip(names, which, strict=True) if chosen]


def cut_decides(allowance: float, rest: float, *, told: bool) -> bool:
    """Whether a few records decide a number that has no rule on its noise. allowance, rest:
    standard errors for what a cut takes, and of all else; told: whether the first is known.
    """
    return not told or allowance > thresholds.CUT_ALLOWANCE.value * rest


def squares_told(bulk: float | None, alpha: float, *, skewed: bool) -> bool:
    """Whether the tail of squared lengths is light enough for what a cut takes from moments to be
    known: by its slope before the cut, and its index there. Where the slope is not clear of noise
    (None), the index of columns that a profile shows to be skewed, or that have none, has to be
    twice as large.
    """
    if bulk is None:
        return alpha >= (
            2 * thresholds.SQUARES_INDEX.value if skewed else thresholds.TAIL_INDEX.value
        )
    return bulk >= thresholds.SQUARES_INDEX.value and alpha >= thresholds.TAIL_INDEX.value


def correlation_tail(records: float, share: float, *, told: bool) -> list[str]:
    """Sentences on what a correlation's cut takes: `share` of its standard error, by about so many
    records; told: whether that is known well enough for an interval.
    """
    if not told:
        return [say.FEW_DECIDE.format(records=records)]
    if share <= thresholds.CUT_TOLD.value:
        return []
    return [say.FEW_ALLOWED.format(records=records)]


def cut_coefficients(
    identified: BoolArray,
    privacy: FloatArray,
    sampling: FloatArray,
    events: FloatArray | None = None,
    *,
    told: bool = True,
) -> CoefficientFlags:
    """The same of a fit whose scores are cut as a whole. privacy: with the allowance for what the
    cut takes; told: whether that is known (fitting.row_tail); events: (q,) about how many decide
    each, None where each record counts.
    """
    none = np.zeros_like(identified)
    rare = none if events is None else np.asarray(events < thresholds.LEAST_EVENTS.value)
    heavy = none if told else ~rare
    known = identified & ~rare & ~heavy
    estimable = known & (privacy <= thresholds.PLAIN_NOISE_ALONE.value * sampling)
    noisy = estimable & (privacy > thresholds.NOISE_DOMINATES.value * sampling)
    return CoefficientFlags(estimable, noisy, heavy, rare)


def coefficients(
    identified: BoolArray, privacy: FloatArray, sampling: FloatArray
) -> CoefficientFlags:
    """Of standard errors (q,) of noise and of sampling, and whether the releases identify each
    coefficient.
    """
    estimable = identified & (privacy <= thresholds.NOISE_ALONE.value * sampling)
    return CoefficientFlags(
        estimable, estimable & (privacy > thresholds.NOISE_DOMINATES.value * sampling)
    )


def jump_tail(slope: float | None, seen: float, *, told: bool, bounded: bool) -> TrustVerdict:
    """Whether what a cut takes from a jump is known. told: whether influences of both signs are
    clear of noise somewhere. slope: of residuals, a standard deviation above its estimate, None
    where it is not clear of noise. seen: the share of residuals from which on noise hides them.
    bounded: whether public bounds leave no room for a tail.
    """
    if bounded:
        return SOUND
    if not told or seen > thresholds.RESIDUALS_SEEN.value:
        return _declined(say.HIDDEN_JUMP)
    light = slope is None or slope >= thresholds.JUMP_SLOPE.value
    return SOUND if light else _declined(say.HEAVY_JUMP)


def jump(
    *,
    known: bool,
    spread: bool,
    tail: TrustVerdict,
    allowance: float,
    sampling: float,
    privacy: float,
) -> TrustVerdict:
    """Of a jump at a cut-off. known, spread: whether moments of both sides, and the sum of squared
    influences, are clear of their noise. tail: of jump_tail. allowance, sampling, privacy: its
    standard errors.
    """
    if not known:
        return _declined(say.NO_JUMP)
    if not spread:
        return _declined(say.HIDDEN_JUMP)
    if not tail.intervals:
        return tail
    if cut_decides(allowance, float(np.hypot(sampling, privacy)), told=True):
        return _declined(say.HEAVY_JUMP)
    if privacy > thresholds.PLAIN_NOISE_ALONE.value * sampling:
        return _declined(say.NOISY_JUMP.format(times=thresholds.PLAIN_NOISE_ALONE.value))
    return SOUND
