# SPDX-License-Identifier: Apache-2.0
"""The one table of thresholds that decide whether an interval is given, declined or warned about,
each with its unit, its reason and the figure that chose it. Simulations are of 95 % intervals.
"""

from dataclasses import dataclass


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
    "index of the tail of squared lengths that are cut, half a standard deviation below its "
    "estimate, of a correlation",
    "below it what is beyond the cut is more than twice what lies at it, and is not told",
)
BULK_INDEX = Threshold(
    1.2,
    "index of the tail of scores over the last factor of four above its noise, a standard "
    "deviation below its estimate",
    "wealth has .8 to 1.2 and weeks of injury .5 to .9, with wrong intervals; delays 1.1 to 1.6, "
    "home runs 1.2 to 1.7, wages 1.6 and more, with right ones",
)
SQUARES_INDEX = Threshold(
    1.4,
    "the same of squared lengths, of which moments are made",
    "hourly wages with a few in thousands have .9 to 1.25 and a correlation that is .046 off, "
    "delays, incomes and lot areas .7 to 1.1; of ten pairs whose intervals hold it was 1.6 and "
    "more",
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
MOVED = Threshold(
    0.2,
    "residual scales by which the last step of a robust fit moves a typical record's predictor, "
    "where its score is unlikely",
    "with 5 % of the records far out in all terms at once, fits of 4 terms move by .16 at most and "
    "are sound, those of 10 terms by .29 to .45 and are 3 to 14 standard errors off",
)
MOVED_CHANCE = Threshold(
    0.01,
    "chance of the score of such a step",
    "fits of 10 terms among such outliers have 1e-14 to .06, two of 29 above .01; at 1e-4 four are",
)
REDESCENDING_MOVED = Threshold(
    0.4,
    "residual scales by which the same step of the biweight, which starts from Huber's solution, "
    "moves it",
    "sound fits move by .46 at most, those that have gone to another solution by .5 to 20",
)
LEAST_FACTOR = Threshold(
    0.9,
    "of the curvature that is expected and measured",
    "standard errors that are off by less than a tenth are those of a 95 % interval that covers "
    ".93",
)
DOUBT = Threshold(
    3 / 4,
    "chance of a smaller curvature than LEAST_FACTOR of that",
    "of 12 fits of house prices it was above in 12, of wages, scores and delays in none of 80; it "
    "is 1/2 before any step",
)
INFORMATION_NOISE = Threshold(
    1.0,
    "noise of a likelihood's information matrix over what public rows lead to expect, of counts "
    "and amounts",
    "beyond it a regression of arrests, 2,725 records and 10 terms, covered .67; with .9 visits "
    "to doctors .96 and more",
)
STRATA_NOISE = Threshold(
    0.35,
    "noise of a stratum's events over their mean number, of a hazard regression with strata",
    "of tables with a 25th of rho: with .5 (nwtco by stage, epsilon = 1) intervals covered .82; "
    "with .19 (epsilon = 3) .95, with .13 and .10 (nafld, flchain, "
    "epsilon = 1) .90 and .92",
)
LIKELIHOOD_BEND = Threshold(
    0.4,
    "error of a typical record's predictor, of a likelihood",
    "what is left of the bend's bias, half of its square, is then a fifth of it; with errors of .5 "
    "to .7, of 200 events and 9 or 15 terms, intervals cover .8",
)
LEAST_PERSONS = Threshold(
    50.0,
    "effective persons of a variance between persons",
    "with 30 intervals cover .94, of unbalanced persons .91",
)
LEAST_CLUSTERS = Threshold(
    10.0,
    "levels with records, of a variance between them",
    "with 20 unequal ones the textbook's own intervals of what varies between clusters cover .85 "
    "to .90",
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
    "the scale of the residuals is not distinguishable from 0",
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
    "quartiles as near to each other cannot be distinguished from their noise",
)
LEAST_DISPERSION = Threshold(
    0.015,
    "of a negative binomial law, half above the least that is estimated",
    "below, no test distinguishes counts from Poisson's",
)
USELESS = Threshold(
    0.25,
    "standard deviations of the response for each of a term's, that an interval of privacy noise "
    "alone is forecast to reach",
    "Cohen's small effect is .2, which such an interval cannot distinguish from 0: of 3,600 "
    "regressions (`python -m benchmarks useless`) all find it where the forecast is below .03, "
    "1 in 6 from .06 to .09, 1 in 30 from there to .12, and beyond none had an interval",
)
EXPECTED_NOISE = Threshold(
    1.25,
    "times a forecast ratio of noise to sampling, that a reply's is expected to be",
    "about the middle of real tables' replies at which 3 or more was forecast (`python -m "
    "benchmarks gate`)",
)
EXPECTED_WAY = Threshold(
    1.4,
    "times the distance to the solution that is forecast, which a plan counts on",
    "chosen on real tables (`python -m benchmarks gate`)",
)
INFLUENCE_INDEX = Threshold(
    2.0,
    "index of the tail of an effect's influences, half a standard deviation below its estimate",
    "below it they have no variance, and the textbook's standard errors do not hold either",
)
RESIDUAL_SLOPE = Threshold(
    1.6,
    "slope of the number of residuals beyond a length, over the last factor of four above its "
    "noise, of an effect",
    "wealth of households has 1 to 1.8, and intervals that held the mean effect in half of the "
    "samples; changes of weight 1.8 to 2.3, with right ones",
)
BEYOND_TRIM = Threshold(
    0.05,
    "of the records, with propensities beyond the trimming bounds",
    "with more, the effect is one of another population",
)
WEIGHTS_NOISE = Threshold(
    0.5,
    "of an arm's sum of weights, that is noise",
    "with more, ratios of sums are not about normal",
)
IMBALANCED = Threshold(
    0.1,
    "standard deviations that covariates of two arms differ by after weighting",
    "the field's convention (Austin 2009)",
)
VARIES = Threshold(
    4.0,
    "standard deviations of its noise that a correlated column's variance exceeds",
    "less, and a column may be constant; once in 30,000 questions a constant one seems not to be",
)
TAIL_EXCLUDED = Threshold(
    2.0,
    "standard deviations of noise that are added to what lies between two radii, of a column that "
    "a profile shows to be skewed",
    "97.5 % sure that it has no longer tail",
)
TAIL_SEEN = Threshold(
    4.0,
    "standard deviations of its noise that what lies between two radii exceeds, of other columns",
    "5 would miss visits to a doctor at n = 20,000 and epsilon = 1",
)
TAIL_SEEN_OF_PERSONS = Threshold(
    3.0,
    "the same of persons, above the share that all directions have",
    "one such column in 700 is noise",
)
LIGHT_COLUMN = Threshold(
    1.4,
    "interquartile ranges from the median to the 95 % quantile (as SKEWED), below which a column "
    "has no tail",
    "normal columns have 1.22, t laws of 3 degrees 1.45 to 1.54",
)
CLIPPING_SHARE = Threshold(
    0.5,
    "of a coefficient's variance, that allows for what clipping may have moved",
    "it is then more than all other errors together",
)
CLIPPING_TOLD = Threshold(
    0.5,
    "sampling errors that clipping typically moves a study's coefficient by",
    "95 % intervals of sampling alone that are off by half of an error cover .92",
)
RANK_ERROR = Threshold(
    0.2,
    "of the blocks, that the rank of a quartile of their estimates may be off by",
    "a quartile between the 5 % and the 45 % quantile still places the window",
)
RANK_ODDS = Threshold(
    100.0,
    "to one, against a rank that is off by more than RANK_ERROR",
    "each quartile is then misplaced once in a hundred releases",
)
JUMP_SLOPE = Threshold(
    1.6,
    "slope of the number of residuals of a side and sign beyond a length, over the last factor of "
    "four above its noise, a standard deviation above its estimate, of a jump",
    "normal residuals have 2 and more, exponential ones 1.4 to 2.8; lognormal ones of sigma = 1.5 "
    "and Pareto tails of index 1.5 to 2 .6 to 1.5, with intervals at n = 10,000 and epsilon = 1 "
    "that covered .4 to .9",
)
RESIDUALS_SEEN = Threshold(
    0.01,
    "of the residuals, a standard deviation of the noise of how many are beyond a length, of a "
    "jump",
    "at .007 slopes of one side and sign still tell a heavy tail from a light one",
)
