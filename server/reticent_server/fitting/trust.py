# SPDX-License-Identifier: Apache-2.0
"""How far a reply's intervals are to be trusted: every decline, flag and warning, and what decides
it.

A rule takes ratios of an error to what it is an error of, and gives a TrustVerdict: intervals or
none, and the sentences that say why. Thresholds stand in one table, each with its unit, its reason
and the figure that chose it. Simulations are of 95 % intervals. Everything is a function of
released or public values.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.steps import FloatArray

BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Threshold:
    """value: in `unit`. reason: why it lies there."""

    value: float
    unit: str
    reason: str


RESOLVED = Threshold(
    3.0,
    "standard deviations of its noise that information, a number of records or a divisor must "
    "exceed",
    "noise alone exceeds it once in 700",
)
LEAST_RECORDS = Threshold(
    20.0,
    "records that a direction rests on",
    "of fewer, errors are not normal even without noise",
)
LEAST_EVENTS = Threshold(
    20.0,
    "events, or non-events, that a coefficient rests on",
    "of fewer, a likelihood's estimates are not normal even without noise",
)
UNRESOLVED_SHARE = Threshold(
    0.3,
    "of a combination's variance, in directions that are not resolved",
    "a smaller share flags more, a larger one tells more that rests on what is expected",
)
NOISE_DOMINATES = Threshold(
    3.0,
    "privacy over sampling standard error of a coefficient",
    "intervals are then more than three times as wide as sampling makes them",
)
NOISE_ALONE = Threshold(
    5.0,
    "privacy over sampling standard error of a coefficient",
    "an interval's width is then the noise alone",
)
PLAIN_NOISE_ALONE = Threshold(
    10.0,
    "the same of least squares",
    "intervals of the textbook's target hold with more noise than those of a robust one are worth",
)
TAIL_INDEX = Threshold(
    1.5,
    "index of the tail of scores that are cut as a whole, half a standard deviation below its "
    "estimate",
    "below it what is beyond the cut is more than twice what lies at it, and is not told",
)
BULK_INDEX = Threshold(
    1.2,
    "index of the tail of scores over the last factor of four above its noise, a standard deviation below its estimate",
    "wealth has .8 to 1.2 and weeks of injury .5 to .9, with wrong intervals; delays 1.1 to 1.6, home runs 1.2 to 1.7, wages 1.6 and more, with right ones",
)
SQUARES_INDEX = Threshold(
    1.4,
    "the same of squared lengths, of which moments are made",
    "hourly wages with a few in thousands have .9 to 1.25 and a correlation that is .046 off, delays, incomes and lot areas .7 to 1.1; of ten pairs whose intervals hold it was 1.6 and more",
)
CUT_ALLOWANCE = Threshold(
    3.0,
    "standard error for what a cut takes over that of all else",
    "the interval is then about the cut",
)
CUT_TOLD = Threshold(
    0.5, "of a standard error, for what a cut takes", "a third more of an interval's width at most"
)
BEND = Threshold(
    0.12,
    "error of a typical record's predictor with a log link",
    "up to there intervals cover .92 to .96, from .15 on .78 to .95",
)
SURPRISE = Threshold(
    1e-4,
    "chance of a mean score as large as the one released",
    "a fit that sees a less likely one is farther from its solution than it knows",
)
LEAST_FACTOR = Threshold(
    0.9,
    "of the curvature that is expected and measured",
    "standard errors that are off by less than a tenth are those of a 95 % interval that covers .93",
)
DOUBT = Threshold(
    3 / 4,
    "chance of a smaller curvature than LEAST_FACTOR of that",
    "of 12 fits of house prices it was above in 12, of wages, scores and delays in none of 80; it is 1/2 before any step",
)
INFORMATION_NOISE = Threshold(
    1.0,
    "noise of a likelihood's information matrix over what public rows lead to expect, of counts "
    "and amounts",
    "beyond it a regression of arrests, 2,725 records and 10 terms, covered .67; with .9 visits "
    "to doctors .96 and more",
)
LIKELIHOOD_BEND = Threshold(
    0.4,
    "error of a typical record's predictor, of a likelihood",
    "what is left of the bend's bias, half of its square, is then a fifth of it; with errors of .5 "
    "to .7, of 200 events and 9 or 15 terms, intervals cover .8",
)
BENT_SHARE = Threshold(
    0.2,
    "of a coefficient's standard error, by which it is moved because the mean score bends",
    "up to there intervals of logits of 200 to 900 events cover .95, beyond it .73",
)
LEAST_PERSONS = Threshold(
    50.0,
    "effective persons of a variance between persons",
    "with 30 intervals cover .94, of unbalanced persons .91",
)
LEAST_CLUSTERS = Threshold(
    10.0,
    "levels with records, of a variance between them",
    "with 20 unequal ones the textbook's own intervals of what varies between clusters cover .85 to .90",
)
CLUSTER_NOISE = Threshold(
    20.0,
    "noise that is taken off a variance between clusters, over what is left",
    "up to there intervals cover .94 and more of what was simulated",
)
MOST_CLIPPED = Threshold(
    0.12,
    "of the persons, whose sums of scores are clipped",
    "with 1,000 to 1,500 persons of 8 rows at epsilon = 1, beyond it intervals within persons "
    "cover .82 to .87",
)
JACOBIAN_NOISE = Threshold(
    0.5,
    "noise of a Jacobian of persons over its smallest eigenvalue",
    "up to there intervals cover .94 to .98, beyond it .6 to .96",
)
GROUP_NOISE = Threshold(
    0.1,
    "noise of a whole step over the response's scale (fitting.budget's eta) at a group's "
    "released number",
    "up to it intervals of fits whose scale is measured cover .93 to .96, from it to .2 .86 to "
    ".90; of a known "
    "scale .93 and more at any",
)
GROUP_NOISE_UNPROFILED = Threshold(
    0.05, GROUP_NOISE.unit + ", without a profile", "from .05 to .1 intervals cover .88"
)
SPREAD_NOISE = Threshold(
    0.02,
    "of the records, noise of the rank of a profile's quantile, or of the number at a level",
    "up to there fits of 2,000 records at epsilon = 1 cover .92 in the mean, with .034 .87, with "
    "a median alone .8",
)
TIED = Threshold(
    0.1,
    "of the responses, at one value",
    "from there on the median residual and quantiles jump from value to value",
)
MOST_TIED = Threshold(
    0.85,
    "of the responses, at one value",
    "no scale of the residuals is told from 0",
)
SEPARATED = Threshold(
    8.0,
    "change of a logit for one length of the whitened regressors",
    "odds of 3,000: the likelihood is flat there, and its maximum may be infinite",
)
HEAVY = Threshold(
    0.1,
    "of a term's mean square that weights take",
    "a third of its standard deviation rests on records that count less",
)
LOCATION_INFORMATION = Threshold(
    0.15,
    "of the normal law's information about location and scale",
    "below it intervals are not those of a normal law",
)
LAST_LOCATION_STEP = Threshold(
    0.35,
    "scales, or ln sigma, of the last step of a location and scale and of what is left after it",
    "a longer one has not settled, and its linear step is not the law's",
)
MOMENTS_GATE = Threshold(
    1 / 3,
    "noise of second moments over the smallest eigenvalue of a formula's",
    "up to there errors of first order hold in simulations",
)
BARED = Threshold(
    0.10,
    "of a column's mean square in each doubling of the radius beyond which records weigh less",
    "visits to a doctor have .15 to .20, capital gains .23 to .31, lots .23 to .28, prices .13 "
    "to .15, with wrong "
    "intervals; wages and their logarithms' regressors .05 to .09, with right ones",
)
COLUMN_REACH = Threshold(
    2.0,
    "squared reach of a column over the squared radius",
    "columns within have no room for a tail that the radius cuts",
)
SKEWED = Threshold(
    1.85,
    "interquartile ranges from the median to the 95 % quantile",
    "a lognormal law of sigma = 1/2 has 1.86, normal ones 1.22. Visits have 2.2 to 2.9, prices "
    "1.9 to 2.7, lots 5.6 "
    "and more, gains have mostly 0; log wages 1.5 to 1.6, square feet 1.5 to 1.75, logarithms of "
    "prices 1.3 to 1.5",
)
BLOCK_NOISE = Threshold(
    1.0,
    "noise of a mean of blocks' estimates over their spread",
    "the noise of quartiles as near to each other cannot be told from theirs",
)
LEAST_DISPERSION = Threshold(
    0.015,
    "of a negative binomial law, half above the least that is estimated",
    "below, counts are told from Poisson's by nobody",
)

FEW_PERSONS = (
    "No intervals are given: for the persons and their largest number of rows the noise is too "
    "large a part of what "
    "standard errors are made of. A larger epsilon, fewer terms or a smaller max_rows would help."
)
FEW_CLUSTERS = (
    "No intervals are given: fewer than 10 clusters have records that are told from none. Take a column with "
    "more levels, or ask for errors by row and for the column as a factor in the formula."
)
CLUSTERS_HIDDEN = (
    "Noise hides by how much clusters widen the intervals of {names}: none is given. A larger epsilon, "
    "fewer terms or a column with fewer levels (10 at least) would help; or put the column in the formula as a factor, "
    "and ask for errors by row."
)
FEW_UNITS = (
    "No interval is known: fewer than 10 sampling units have records that are told from none. Name coarser units or ask "
    "with weights alone."
)
UNITS_HIDDEN = (
    "No interval is known: noise hides how much sampling units differ. A larger epsilon or coarser units would help; weights "
    "alone take records as drawn one by one."
)
NO_WEIGHTS = "No interval is known: the sum of weights is not above its noise."
CLUSTERS_TOLD = (
    "Errors by {column}: where records of a level have nothing in common, sampling errors are about {wider:.2g} times "
    "those by row, as noise hides that they have nothing; the more levels multiply them, the less noise adds."
)
CLUSTERS_NOT_TOLD = (
    "Errors by {column}: intervals are expected only of coefficients whose variance the levels of {column} "
    "multiply by {effect:.2g} or more. A larger epsilon, fewer terms or a column with fewer levels would help."
)
UNSETTLED = (
    "No intervals are given: the mean response bends, and with so much noise the fit may still "
    "be on the bend. A larger epsilon or fewer "
    "terms would help."
)
INFORMATION_UNKNOWN = (
    "No intervals are given: the information matrix is below its noise at this epsilon. A larger "
    "epsilon or fewer terms would help."
)
NOT_ARRIVED = (
    "No intervals are given: the last step found the fit farther from its solution than the "
    "steps before it had told. A larger epsilon, fewer terms "
    "or the logarithm of a regressor with a long tail would help."
)
CURVATURE_DOUBTED = (
    "No intervals are given: the steps of the fit contradict the curvature that its standard errors would rest on. A larger epsilon, fewer terms "
    "or the logarithm of a regressor with a long tail would help."
)
SAME_IN_ALL_ROWS = (
    "With person effects a term that is the same in all rows of a person, or nearly, is not "
    "identifiable: nothing of it is "
    "left without the person's mean."
)
FEW_IN_GROUP = (
    "The group's records are too few for intervals at this epsilon: a larger epsilon, fewer "
    "terms, coarser groups or a "
    "profile by the curator would help."
)
SPREAD_UNKNOWN = (
    "No intervals are given: at this epsilon the query cannot tell the spread of {columns} for "
    "itself, and no profile does. A larger "
    "epsilon would help, or a profile by the curator that resolves these columns."
)
FEW_EVENTS = (
    "Compared with a level of too few events (or records), or of such a level: {names}. No "
    "interval is given: choose a frequent reference level, or merge levels."
)
BENT = (
    "The {bends} bends, and with so much noise that moves {names}: no interval is given. A "
    "larger epsilon or fewer terms would help."
)
TIED_ROBUST = (
    "Nearly all records have the same response, so residuals have no scale and a robust fit no "
    "standard error: no "
    'intervals are given. Ask for loss="squared", or model whether the response differs from that value.'
)
TIED_QUANTILE = (
    "Many records have the same response, so quantiles jump from value to value and have no "
    "standard error: no "
    "intervals are given. Model whether the response exceeds a value (a binomial GLM) instead."
)


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
    return value > RESOLVED.value * noise


def moments_hold(gate: float) -> bool:
    """Whether errors of first order hold of a formula over noisy second moments; gate: noise over
    the smallest eigenvalue.
    """
    return gate <= MOMENTS_GATE.value


def bared(lost: FloatArray) -> BoolArray:
    """(q,) whether a radius takes too much of a column's tail for intervals; lost: of its mean
    square in a doubling.
    """
    return np.asarray(lost >= BARED.value)


def skewed(skewness: FloatArray) -> BoolArray:
    """(q,) whether a profile shows that columns may have such a tail
    (fitting.heavy_terms.skewness).
    """
    return np.asarray(skewness >= SKEWED.value)


def blocks_tell(noise: FloatArray, spread: FloatArray) -> BoolArray:
    """(m,) whether means of blocks have less noise than the blocks' estimates have spread."""
    return np.asarray(noise < BLOCK_NOISE.value * spread)


def dispersed(alpha: float) -> bool:
    """Whether a dispersion is told from a Poisson law's."""
    return alpha > LEAST_DISPERSION.value


def linear_step(off: float, most: float) -> TrustVerdict:
    """Of a fit whose typical predictor is off by so much, where a linear step's standard errors
    hold up to `most`.
    """
    return _declined(UNSETTLED) if off > most else SOUND


def information(noise: float) -> TrustVerdict:
    """Of a likelihood of counts or amounts, whose information matrix has this noise relative to
    what is expected.
    """
    return _declined(INFORMATION_UNKNOWN) if noise > INFORMATION_NOISE.value else SOUND


def arrived(chance: float) -> TrustVerdict:
    """Of a fit whose last mean score has this chance where it is as near to its solution as it
    says.
    """
    return _declined(NOT_ARRIVED) if chance < SURPRISE.value else SOUND


def believed(doubt: float) -> TrustVerdict:
    """Of a fit whose curvature has this chance of being less than what its standard errors rest
    on.
    """
    return _declined(CURVATURE_DOUBTED) if doubt > DOUBT.value else SOUND


def persons(effective: float, clipped: float, unsure: float) -> TrustVerdict:
    """Of standard errors between persons: their effective number, the share that is clipped, and
    the noise of the Jacobian over its smallest eigenvalue.
    """
    enough = effective >= LEAST_PERSONS.value
    known = enough and clipped <= MOST_CLIPPED.value and unsure <= JACOBIAN_NOISE.value
    return SOUND if known else _declined(FEW_PERSONS)


def few_clusters(present: float) -> TrustVerdict:
    """Of standard errors between so many levels of a public column."""
    return _declined(FEW_CLUSTERS) if present < LEAST_CLUSTERS.value else SOUND


def few_units(present: float) -> str:
    """What is said of a survey with so few sampling units; empty of enough."""
    return FEW_UNITS if present < LEAST_CLUSTERS.value else ""


def units_hidden(noise: float) -> str:
    """What is said where so much noise, over what is left, was taken off; empty of less."""
    return UNITS_HIDDEN if noise > CLUSTER_NOISE.value else ""


def told_from_clusters(noise: FloatArray) -> BoolArray:
    """(q,) whether variances between clusters are worth intervals. noise (q,): as of
    CLUSTER_NOISE.
    """
    return np.asarray(noise <= CLUSTER_NOISE.value)


def clusters_hidden(names: Sequence[str]) -> str:
    """What is said of coefficients whose variances are not."""
    return CLUSTERS_HIDDEN.format(names=", ".join(names))


def clusters_expected(column: str, noise: float, wider: float) -> str:
    """What a plan says of errors between levels. noise: what is taken off a variance, over that of
    independent rows; wider: standard errors over theirs.
    """
    if noise <= CLUSTER_NOISE.value:
        return CLUSTERS_TOLD.format(column=column, wider=wider)
    return CLUSTERS_NOT_TOLD.format(column=column, effect=noise / CLUSTER_NOISE.value)


def group(eta: float, *, measured: bool, profiled: bool) -> TrustVerdict:
    """Of the fit of one group, whose noise ratio is eta at its released number of records.
    measured: whether its scale is.
    """
    most = GROUP_NOISE if profiled else GROUP_NOISE_UNPROFILED
    return _declined(FEW_IN_GROUP) if measured and eta > most.value else SOUND


def spread(unknown: Sequence[str]) -> TrustVerdict:
    """Of a fit that knows of these columns the median alone."""
    return _declined(SPREAD_UNKNOWN.format(columns=", ".join(unknown))) if unknown else SOUND


def tied(share: float) -> bool:
    """Whether medians of what so many equal responses leave jump from value to value."""
    return share >= TIED.value


def without_scale(share: float) -> bool:
    """Whether residuals of so many equal responses have no scale."""
    return share >= MOST_TIED.value


def robust(share: float) -> TrustVerdict:
    """Of a robust fit of a response of which the share has one value."""
    return _declined(TIED_ROBUST) if without_scale(share) else SOUND


def quantiles(share: float) -> TrustVerdict:
    """Of a quantile regression of such a response."""
    return _declined(TIED_QUANTILE) if tied(share) else SOUND


def separated(length: float, what: str = "the responses") -> TrustVerdict:
    """Of a binomial or multinomial fit whose slopes of whitened regressors are so long."""
    if not length > SEPARATED.value:
        return SOUND
    words = f"A coefficient is so large that {what} may be separated: read it as a direction only."
    return TrustVerdict(sentences=(words,))


def heavy(lost: Mapping[str, float]) -> list[str]:
    """The terms of whose mean square weights take much; lost: the share of each."""
    return [name for name, share in lost.items() if share > HEAVY.value]


@dataclass(frozen=True, slots=True)
class CutWords:
    """What a model's replies say of a cut. instead: how the target is asked for that few records do
    not decide, with a comma, or nothing where it was asked; bends: what is not linear in the
    coefficients.
    """

    instead: str
    bends: str = "mean response"


OF_LINES = CutWords('loss="huber", for ')
OF_MEANS = CutWords('target="robust", for ')
OF_HAZARDS = CutWords('target="robust", for ', bends="hazard")
OF_ROBUST_HAZARDS = CutWords("", bends="hazard")


@dataclass(frozen=True, slots=True, eq=False)
class CoefficientFlags:
    """estimable: (q,) which coefficients have an interval. noisy: (q,) those whose noise dominates.
    heavy: (q,) those that a few records decide, and sparse: (q,) those that a level of too few
    events decides, where that was asked; eventless: (q,) those that few events decide, and bent:
    (q,) those that the bend of the mean score decides, of a likelihood.
    """

    estimable: BoolArray
    noisy: BoolArray
    heavy: BoolArray | None = None
    eventless: BoolArray | None = None
    sparse: BoolArray | None = None
    bent: BoolArray | None = None

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
        self, names: Sequence[str], share: FloatArray, records: float, words: CutWords
    ) -> list[str]:
        """Sentences on what a cut takes: share (q,) of the standard errors; records: about how many
        are cut.
        """
        said = []
        heavy = [] if self.heavy is None else _named(names, self.heavy)
        if heavy:
            said.append(
                f"About {records:.0f} records decide {', '.join(heavy)}: no interval is given. "
                f"Ask for {words.instead}a logarithm of what has the long tail, or for a "
                "larger epsilon."
            )
        rare = [] if self.eventless is None else _named(names, self.eventless)
        if rare:
            said.append(
                f"Fewer than about {LEAST_EVENTS.value:.0f} events decide {', '.join(rare)}: no "
                "interval is given. Merge rare levels, or take "
                "one with many events as the reference."
            )
        curved = [] if self.bent is None else _named(names, self.bent)
        said += [BENT.format(bends=words.bends, names=", ".join(curved))] if curved else []
        leaning = _named(names, self.estimable & (share > CUT_TOLD.value))
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
        told = [self.estimable, self.heavy, self.eventless, self.sparse, self.bent]
        lost = _named(names, ~np.any([x for x in told if x is not None], axis=0))
        if lost:
            said.append(
                f"Not identifiable at this epsilon (collinear, constant or {rare}: the data's "
                "information is "
                f"below the noise): {', '.join(lost)}."
            )
            said += [SAME_IN_ALL_ROWS] if deviations else []
        few = [] if self.sparse is None else _named(names, self.sparse)
        said += [FEW_EVENTS.format(names=", ".join(few))] if few else []
        loud = _named(names, self.noisy)
        if loud:
            said.append(
                f"Privacy noise dominates the standard errors of {', '.join(loud)}: a larger "
                "epsilon would help."
            )
        return said


def _named(names: Sequence[str], which: BoolArray) -> list[str]:
    return [name for name, chosen in zip(names, which, strict=True) if chosen]


def heavy_tails(allowance: FloatArray, rest: FloatArray, *, told: bool) -> BoolArray:
    """(q,) whether a few records decide a coefficient. allowance, rest: (q,) standard errors for
    what the cut takes, and of all else; told: whether the first are known (fitting.row_tail).
    """
    if not told:
        return np.ones(len(rest), dtype=bool)
    return np.asarray(allowance > CUT_ALLOWANCE.value * rest)


def squares_told(bulk: float | None, alpha: float, *, skewed: bool) -> bool:
    """Whether the tail of squared lengths is light enough for what a cut takes from moments to be
    known: by its slope before the cut, and its index there. Where the slope is not clear of noise
    (None), the index of columns that a profile shows to be skewed, or that have none, has to be
    twice as large.
    """
    if bulk is None:
        return alpha >= (2 * SQUARES_INDEX.value if skewed else TAIL_INDEX.value)
    return bulk >= SQUARES_INDEX.value and alpha >= TAIL_INDEX.value


PAIR_HIDDEN = (
    "No test and no interval is expected: the noise hides that the columns vary. Ask for a larger epsilon, "
    'or for method="spearman".'
)
CONSTANT = (
    "A column does not vary by more than the noise, so the correlation may be anything from -1 to 1, "
    "and is not tested. Ask for a larger epsilon; a constant column has no correlation."
)


def correlation_tail(records: float, share: float, *, told: bool) -> list[str]:
    """Sentences on what a correlation's cut takes: `share` of its standard error, by about so many
    records; told: whether that is known well enough for an interval.
    """
    if not told:
        return [
            (
                f"About {records:.0f} records decide this correlation: it may be anything from -1 to 1, "
                'and is not tested. Ask for method="spearman", for the correlation with a logarithm '
                "of what has the long tail, or for a larger epsilon."
            )
        ]
    if share <= CUT_TOLD.value:
        return []
    return [
        (
            f"Half or more of the standard error allows for about {records:.0f} records far from the "
            'middle, which are cut; method="spearman" does not depend on them.'
        )
    ]


def eventless(events: FloatArray | None) -> BoolArray | None:
    """(q,) whether too few events decide a coefficient; None where each record counts."""
    return None if events is None else np.asarray(events < LEAST_EVENTS.value)


def bent(bend: FloatArray | None, error: FloatArray) -> BoolArray:
    """(q,) whether the bend of the mean score decides a coefficient. bend, error: (q,), what it is
    moved by and its standard error.
    """
    if bend is None:
        return np.zeros(len(error), dtype=bool)
    return np.asarray(np.abs(bend) > BENT_SHARE.value * error)


def cut_coefficients(
    identified: BoolArray,
    privacy: FloatArray,
    sampling: FloatArray,
    heavy: BoolArray,
    eventless: BoolArray | None = None,
    bent: BoolArray | None = None,
) -> CoefficientFlags:
    """The same of a fit whose scores are cut as a whole. heavy: (q,) of heavy_tails; eventless:
    (q,) of `eventless`; bent: (q,) of `bent`.
    """
    rare = np.zeros_like(heavy) if eventless is None else eventless
    heavy = heavy & ~rare
    curved = np.zeros_like(heavy) if bent is None else bent & ~rare & ~heavy
    estimable = (
        identified & ~heavy & ~rare & ~curved & (privacy <= PLAIN_NOISE_ALONE.value * sampling)
    )
    noisy = estimable & (privacy > NOISE_DOMINATES.value * sampling)
    return CoefficientFlags(estimable, noisy, heavy, rare, bent=curved)


def coefficients(
    identified: BoolArray, privacy: FloatArray, sampling: FloatArray
) -> CoefficientFlags:
    """Of standard errors (q,) of noise and of sampling, and whether the releases identify each
    coefficient.
    """
    estimable = identified & (privacy <= NOISE_ALONE.value * sampling)
    return CoefficientFlags(estimable, estimable & (privacy > NOISE_DOMINATES.value * sampling))
