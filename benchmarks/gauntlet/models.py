# SPDX-License-Identifier: Apache-2.0
"""The models: ordinary ones that analysts write, and the ways in which tables make them hard."""

from typing import Any

from benchmarks.gauntlet.questions import Fit, GauntletQuestion, Level, MeanFit, Ranks
from benchmarks.noise_free import glm_target
from reticent_server.kinds.glm.query import Glm
from reticent_server.kinds.hypothesis_test.query import HypothesisTest
from reticent_server.kinds.linear_regression import target as linear_target
from reticent_server.kinds.location_scale.query import LocationScale
from reticent_server.kinds.mean.kind import Mean
from reticent_server.kinds.quantiles.kind import Quantiles
from reticent_server.kinds.shared.linear.query import LinearRegression

EPSILONS = (0.5, 1.0, 4.0)
FEW = 5_000
MANY = 20_000
SIXTEEN = (
    "sqft_living + sqft_lot + sqft_basement + bedrooms + bathrooms + floors + condition + grade "
    "+ view"
    " + yr_built + yr_renovated + lat + long + sqft_living15 + sqft_lot15 + waterfront"
)
MINCER = "log_wage ~ educ_years + experience + experience_sq + female"


def linear(name: str, table: str, n: int | None, formula: str, **more: Any) -> Fit:
    """A regression; its target is without noise where it is the noisy Newton fit without a
    penalty.
    """
    collinear = more.pop("collinear", False)
    query = LinearRegression(formula, **more)
    newton = query.mechanism == "newton" and query.ridge is None
    solve = linear_target.noise_free_fit if newton else None
    return Fit(name, table, n, EPSILONS, query, solve, collinear)


def glm(name: str, table: str, n: int | None, formula: str, family: str, **more: Any) -> Fit:
    query = Glm(formula, family, **more)
    return Fit(name, table, n, EPSILONS, query, glm_target.noise_free_fit)


def location(name: str, table: str, n: int | None, column: str, where: str | None = None) -> Fit:
    return Fit(name, table, n, EPSILONS, LocationScale(column, where))


def mean(name: str, table: str, n: int | None, column: str, where: str | None = None) -> MeanFit:
    return MeanFit(name, table, n, EPSILONS, Mean(column, where))


def ranks(name: str, table: str, n: int | None, column: str, *probabilities: float) -> Ranks:
    return Ranks(name, table, n, EPSILONS, Quantiles(column, probabilities))


def level(name: str, table: str, formula: str, test: str, **more: Any) -> Level:
    rows = more.pop("hypothesis", ("null = 0",))
    return Level(f"{test}: {name}", table, FEW, (1.0,), HypothesisTest(formula, rows, test, **more))


NUMERIC: list[GauntletQuestion] = [
    linear(
        "11 terms",
        "houses",
        None,
        "log(price) ~ sqft_living + bedrooms + bathrooms + floors + condition + grade + yr_built "
        "+ lat + long + waterfront",
    ),
    linear("17 terms, some nearly constant", "houses", None, f"log(price) ~ {SIXTEEN}"),
    linear("heavy-tailed x", "houses", FEW, "price ~ sqft_living + sqft_lot"),
    linear(
        "heavy-tailed x, two of them",
        "houses",
        MANY,
        "log(price) ~ sqft_lot + sqft_lot15 + sqft_living",
    ),
    linear("logs", "houses", FEW, "log(price) ~ log(sqft_lot) + log(sqft_living)"),
    linear("squares", "wages", MANY, "log_wage ~ educ_years + A_AGE + I(A_AGE**2) + female"),
    linear("Mincer", "wages", FEW, MINCER),
    linear("Mincer, whole", "wages", None, MINCER),
    linear("least squares, Mincer", "wages", MANY, MINCER, loss="squared"),
    linear(
        "near-constant columns",
        "houses",
        MANY,
        "log(price) ~ sqft_living + yr_renovated + view + waterfront",
    ),
    linear("near-constant gain, loss", "adult", MANY, "edu ~ age + gain + loss + hours"),
    linear(
        "exactly collinear",
        "houses",
        MANY,
        "log(price) ~ sqft_living + sqft_above + sqft_basement + grade",
        collinear=True,
    ),
    linear("nearly collinear", "houses", MANY, "log(price) ~ sqft_living + sqft_again + grade"),
    linear("correlated .88", "houses", MANY, "log(price) ~ sqft_living + sqft_above + grade"),
    linear("large units of y", "houses", MANY, "price_milli ~ sqft_living + grade + bathrooms"),
    linear("huge bounds of x", "houses", MANY, "log(price) ~ sqft_wide + grade + bathrooms"),
    linear("no intercept", "houses", MANY, "price ~ 0 + sqft_living + bathrooms"),
]

FACTORS: list[GauntletQuestion] = [
    linear(
        "23 terms with factors",
        "houses",
        None,
        f"log(price) ~ {SIXTEEN} + conditions + beds",
        collinear=True,  # condition, and its levels
    ),
    linear("one factor, modal first", "houses", MANY, "log(price) ~ conditions + sqft_living"),
    linear(
        "one factor, rarest first", "houses", MANY, "log(price) ~ conditions_rare + sqft_living"
    ),
    linear("factor of health, rarest first", "randhie", MANY, "disea ~ health + lncoins"),
    linear(
        "three factors, modal first",
        "houses",
        MANY,
        "log(price) ~ beds + conditions + views + sqft_living",
    ),
    linear("crossed factors", "houses", MANY, "log(price) ~ beds*basement + sqft_living"),
    linear("factor of 9 zones", "houses", None, "log(price) ~ zone + sqft_living"),
    linear("integer as a factor", "houses", MANY, "log(price) ~ C(grade5) + sqft_living"),
    linear(
        "two integers as factors",
        "houses",
        MANY,
        "log(price) ~ C(floors_i) + C(year) + sqft_living",
    ),
    linear(
        "no intercept, factor",
        "houses",
        MANY,
        "log(price) ~ 0 + basement + conditions + log(sqft_living)",
    ),
]

SHAPES: list[GauntletQuestion] = [
    linear("interaction, uncentred", "houses", MANY, "log(price) ~ sqft_living*lat"),
    linear("interaction, three-way", "houses", MANY, "log(price) ~ sqft_living*grade*yr_built"),
    linear(
        "interaction with a factor",
        "houses",
        MANY,
        "log(price) ~ sqft_living*basement + yr_built*basement",
    ),
    linear("interaction of age and years", "fair", MANY, "rate_marriage ~ age*yrs_married"),
    linear(
        "poly and bs",
        "houses",
        MANY,
        "log(price) ~ poly(yr_built, 3) + bs(sqft_living, knots=[1500, 2500, 4000])",
    ),
    linear("poly of few values", "houses", MANY, "log(price) ~ poly(grade, 4)"),
    linear(
        "log1p of mostly zeros",
        "houses",
        MANY,
        "log(price) ~ log1p(sqft_basement) + log1p(yr_renovated) + log(sqft_living)",
    ),
]

MASKS: list[GauntletQuestion] = [
    linear(
        "log with zeros, where",
        "houses",
        MANY,
        "log(price) ~ log(basement_m) + log(sqft_living)",
        where="basement == 1",
    ),
    linear(
        "log, zeros declared missing",
        "houses",
        MANY,
        "log(price) ~ log(basement_m) + log(sqft_living)",
    ),
    linear(
        "mask of 10 %",
        "houses",
        None,
        "log(price) ~ sqft_living + grade + bathrooms",
        where="yr_built >= 2008",
    ),
    linear(
        "mask of 10 % that moves x",
        "houses",
        None,
        "log(price) ~ sqft_living + grade + bathrooms",
        where="sqft_living > 3250",
    ),
    linear(
        "mask of 8 %, fair health",
        "randhie",
        None,
        "disea ~ lncoins + idp + lpi",
        where="hlthf == 1",
    ),
    linear("missing 5 %", "houses", MANY, "log(price) ~ sqft_living_m + grade_m + bathrooms_m"),
]

RESPONSES: list[GauntletQuestion] = [
    linear(
        "heteroscedastic, heavy tails", "wages", MANY, "WSAL_VAL ~ educ_years + experience + female"
    ),
    linear("y with 47 % at one value", "adult", MANY, "hours ~ age + edu + male"),
    linear("y with 92 % zeros", "adult", MANY, "gain ~ age + edu + male"),
    linear(
        "zero-heavy count y",
        "randhie",
        MANY,
        "mdvis ~ lncoins + idp + lpi + fmde + physlm + disea + hlthg + hlthf + hlthp",
    ),
    linear(
        "y with 68 % zeros",
        "fair",
        FEW,
        "affairs ~ rate_marriage + age + yrs_married + religious",
    ),
    linear(
        "ordinal y and x",
        "fair",
        FEW,
        "rate_marriage ~ age + yrs_married + children + religious + educ + occupation",
    ),
    linear(
        "302 distinct rows",
        "schools",
        FEW,
        "share ~ LOWINC + PERASIAN + PERBLACK + PERHISP + PTRATIO + PCTAF + PCTCHRT + PCTYRRND",
    ),
    linear("72 distinct rows", "cards", FEW, "AVGEXP ~ AGE + INCOME + INCOMESQ + OWNRENT"),
    linear("anes, its own n", "anes", None, "selfLR ~ PID + age + educ + income"),
]

OTHER_FITS: list[GauntletQuestion] = [
    linear(
        "tukey, logs",
        "houses",
        MANY,
        "log(price) ~ log(sqft_living) + grade + bathrooms",
        loss="tukey",
    ),
    linear("tukey, wages", "wages", MANY, MINCER, loss="tukey"),
    linear(
        "tukey, heteroscedastic",
        "wages",
        MANY,
        "WSAL_VAL ~ educ_years + experience + female",
        loss="tukey",
    ),
    linear("ridge .1", "houses", MANY, "log(price) ~ sqft_living + sqft_above + grade", ridge=0.1),
    linear(
        "ridge .01, collinear",
        "houses",
        MANY,
        "log(price) ~ sqft_living + sqft_above + sqft_basement + grade",
        ridge=0.01,
        collinear=True,
    ),
    linear(
        "gradient descent",
        "houses",
        MANY,
        "log(price) ~ sqft_living + grade + bathrooms",
        mechanism="gradient_descent",
    ),
    linear("gradient descent, wages", "wages", MANY, MINCER, mechanism="gradient_descent"),
    linear(
        "influence",
        "wages",
        None,
        "log_wage ~ educ_years + experience + female",
        mechanism="influence",
    ),
    linear(
        "influence, skewed",
        "houses",
        None,
        "log(price) ~ sqft_living + sqft_lot + grade",
        mechanism="influence",
    ),
]

GENERALISED: list[GauntletQuestion] = [
    glm("logit", "adult", MANY, "high ~ age + edu + hours + male", "binomial"),
    glm("logit, gain and loss", "adult", MANY, "high ~ age + edu + gain + loss", "binomial"),
    glm("logit, factors", "adult", MANY, "high ~ marital + race + work + age", "binomial"),
    glm(
        "logit, interaction and poly",
        "adult",
        MANY,
        "high ~ age*edu + poly(hours, 2)",
        "binomial",
    ),
    glm(
        "logit, mask of 10 %, missing",
        "adult",
        None,
        "high ~ age_m + hours_m + edu",
        "binomial",
        where='marital == "Was" and male == 1',
    ),
    glm("logit, rare ones", "houses", None, "waterfront ~ lat + log(price)", "binomial"),
    glm(
        "logit, nearly separated",
        "houses",
        MANY,
        "dear ~ log(sqft_living) + grade + lat",
        "binomial",
    ),
    glm(
        "logit, affairs",
        "fair",
        FEW,
        "had ~ rate_marriage + age + yrs_married + religious + educ",
        "binomial",
    ),
    glm("logit, vote", "anes", None, "vote ~ PID + age + educ + income", "binomial"),
    glm(
        "logit of shares",
        "schools",
        FEW,
        "share ~ LOWINC + PERASIAN + PERBLACK + PERHISP + PTRATIO",
        "binomial",
    ),
    glm(
        "Poisson, overdispersed",
        "randhie",
        MANY,
        "mdvis ~ lncoins + idp + lpi + fmde + physlm + disea + hlthg",
        "poisson",
    ),
    glm(
        "Poisson, overdispersed, tuning 2",
        "randhie",
        MANY,
        "mdvis ~ lncoins + idp + lpi + physlm",
        "poisson",
        tuning=2.0,
    ),
    glm(
        "Poisson, underdispersed",
        "houses",
        MANY,
        "bedrooms ~ log(sqft_living) + bathrooms + yr_built",
        "poisson",
    ),
    glm(
        "negative binomial",
        "randhie",
        MANY,
        "mdvis ~ lncoins + idp + lpi + physlm + disea",
        "negative_binomial",
        dispersion=1.0,
    ),
    glm(
        "Gamma, wages",
        "wages",
        MANY,
        "WSAL_VAL ~ educ_years + experience + experience_sq + female",
        "gamma",
    ),
    glm(
        "Gamma, prices",
        "houses",
        MANY,
        "price ~ log(sqft_living) + grade + lat + conditions",
        "gamma",
    ),
    glm("Gamma, food", "engel", FEW, "foodexp ~ log(income)", "gamma"),
]

COLUMNS: list[GauntletQuestion] = [
    location("location, price", "houses", FEW, "price"),
    location("location, wages", "wages", MANY, "WSAL_VAL"),
    location("location, counts", "randhie", MANY, "mdvis"),
    location("location, 47 % at one value", "adult", MANY, "hours"),
    location("location, 92 % zeros", "adult", MANY, "gain"),
    location("location, where and missing", "houses", None, "sqft_living_m", "yr_built >= 2008"),
    mean("mean, where", "houses", None, "price", "yr_built >= 2008"),
    mean("mean, zeros, where", "adult", FEW, "gain", "age > 55"),
    mean("mean, missing", "houses", FEW, "sqft_living_m"),
    mean("mean, rare where", "houses", MANY, "sqft_lot", "waterfront == 1"),
    ranks("quantiles", "houses", None, "price", 0.1, 0.5, 0.9, 0.99),
    ranks("quantiles, ties", "adult", MANY, "hours", 0.1, 0.5, 0.9, 0.99),
    ranks("quantiles, huge bounds", "houses", MANY, "sqft_wide", 0.1, 0.5, 0.9),
    ranks("quantiles, missing", "houses", FEW, "sqft_living_m", 0.25, 0.5, 0.75),
]

LEVELS: list[GauntletQuestion] = [
    each
    for test in ("wald", "lr", "score")
    for each in (
        level(
            "linear, heteroscedastic", "wages", "WSAL_VAL ~ educ_years + experience + null", test
        ),
        level(
            "linear, factor of df 2",
            "adult",
            "hours ~ age + edu + null3",
            test,
            hypothesis=("null3[b] = 0", "null3[c] = 0"),
        ),
        level("logit", "adult", "high ~ age + edu + null", test, family="binomial"),
        level(
            "Poisson, overdispersed",
            "randhie",
            "mdvis ~ lncoins + idp + null",
            test,
            family="poisson",
        ),
        level("Gamma", "wages", "WSAL_VAL ~ educ_years + null", test, family="gamma"),
    )
]

MODELS: dict[str, list[GauntletQuestion]] = {
    "numeric terms": NUMERIC,
    "factors": FACTORS,
    "interactions and bases": SHAPES,
    "masks and missing values": MASKS,
    "responses": RESPONSES,
    "other losses and mechanisms": OTHER_FITS,
    "generalised linear models": GENERALISED,
    "single columns": COLUMNS,
    "tests": LEVELS,
}

SUITE = (
    "factor of health, rarest first",
    "Poisson, overdispersed",
    "zero-heavy count y",
)
"""Eight models over statsmodels' tables alone, which every run of the tests asks."""


def every() -> list[GauntletQuestion]:
    return [question for group in MODELS.values() for question in group]


def named(name: str) -> GauntletQuestion:
    """LookupError without such a model."""
    for question in every():
        if question.name == name:
            return question
    raise LookupError(name)
