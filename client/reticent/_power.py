# SPDX-License-Identifier: Apache-2.0
"""The power of a test, noise included: from public facts and free plans, before anything is spent.

A test of size α of an effect has the noncentrality λ = n·f(effect)/(1 + ν²), ν² the variance of the
privacy noise over that of sampling, and the power of the normal (or, for several groups, χ²) law
with that noncentrality:

    t_test, two groups   n d²/4         d: the difference in standard deviations, of equal groups
    t_test, one mean     n d²           d: the distance from the null value (paired: of differences)
    anova                n f²           f: the sd of the groups' means over that within groups
    correlation          n r²/(1 − r²)  at r = 0
    log_rank             n d w(1 − w) log² h   h: the hazard ratio, d: the share of records with
                                        the event (`events`), w = ½: the share of one group
    linear_regression    n r²/(1 − r²)  r: the partial correlation of response and term; .95 of it
                                        for a robust loss

ν comes from the plan's forecast. It is that of the data set's n and of ε, and goes with n as 1/√n.
All records are taken to be in use, and the test's size to be exact.

Source: Cohen (1988), Statistical power analysis for the behavioral sciences; the effects are those
of statsmodels' power module. Schoenfeld (1983), Biometrics 39, for the log-rank test.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, isfinite, log, nan, sqrt
from typing import Any

from scipy.special import chdtri, chndtr, ndtr

from reticent._errors import InvalidQuery
from reticent._plan import Plan
from reticent._text import Text, number, plain

KINDS = ("t_test", "anova", "correlation", "log_rank", "linear_regression")
_CORRELATIONS = ("correlation", "linear_regression")
_EFFICIENCY = 0.95  # of the robust losses' default constants at normal errors
_LEAST_EPSILON, _MOST_EPSILON = 1e-3, 100.0  # between which an epsilon is looked for
_PRECISION = 0.01  # relative, of an epsilon: a plan's forecast is no better than that
_LARGEST_EFFECT = 10.0
_HALF = 0.5  # of the records in each of two groups
_MOST_RECORDS = 1e12
# noncentrality beyond which a test of up to 64 groups sees the effect with certainty
_CERTAIN = 1e4
_HALVINGS = 200  # of an interval's logarithm: more than a float has

Forecast = Callable[[float], Plan]


@dataclass(frozen=True, slots=True, repr=False)
class Power:
    """What a test needs. effect_size, nobs, epsilon, alpha, power: as given, one of them solved for
    (`solved`; NaN where no value reaches it). noise: the privacy noise over the sampling error;
    without it the power is `power_without_noise`.

    >>> ds.power("correlation", ["price", "grade"], effect_size=0.1, epsilon=0.5).power
    """

    test: str
    effect_size: float
    nobs: float
    epsilon: float
    alpha: float
    power: float
    noise: float
    power_without_noise: float
    solved: str

    def summary(self) -> Text:
        """The numbers as a text."""
        rows = {
            "effect size": number(self.effect_size),
            "records": f"{self.nobs:,.0f}",
            "epsilon": plain(self.epsilon),
            "alpha": plain(self.alpha),
            "power": number(self.power),
            "power without noise": number(self.power_without_noise),
            "noise over sampling error": number(self.noise),
        }
        lines = [f"  {name:<26}{value}" for name, value in rows.items()]
        return Text("\n".join([f"Power of {self.test}, solved for {self.solved}", "", *lines]))

    def __repr__(self) -> str:
        return str(self.summary())

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()


@dataclass(frozen=True, slots=True)
class PlannedTest:
    """A planned test. squared: λ/n of an effect, without noise; degrees: of freedom; noise: ν of a
    plan at the data set's n.
    """

    test: str
    n: int
    squared: Callable[[float], float]
    degrees: int
    noise: Callable[[Plan], float]

    def power(self, effect: float, nobs: float, noise: float, alpha: float) -> float:
        """noise: ν at the data set's n."""
        ratio = noise * sqrt(self.n / nobs)
        strength = nobs * self.squared(effect) / (1 + ratio**2)
        if not strength > 0:
            return alpha
        cut, root = float(chdtri(self.degrees, alpha)), sqrt(strength)
        if self.degrees == 1:
            return float(ndtr(root - sqrt(cut)) + ndtr(-root - sqrt(cut)))
        return 1.0 if strength > _CERTAIN else float(1 - chndtr(cut, self.degrees, strength))


def design_of(
    query: dict[str, Any],
    n: int,
    sd: float | None,
    term: str | None,
    levels: int,
    events: float | None = None,
) -> PlannedTest:
    """The design of a question's test. levels: of the group's column. events: share of the records.
    Raises InvalidQuery for what is not known.
    """
    kind = str(query["kind"])
    if kind not in KINDS:
        raise InvalidQuery(f"power is for {', '.join(KINDS)}; {kind} is none of them.")
    if kind == "linear_regression":
        kept = 1.0 if query.get("loss") == "squared" else _EFFICIENCY
        return PlannedTest(
            kind, n, lambda r: kept * _partial(r), 1, lambda plan: _of_term(plan, term)
        )
    if kind == "correlation":
        return PlannedTest(kind, n, _partial, 1, lambda plan: _error(plan) * sqrt(n))
    if kind == "log_rank":
        return _of_survival(kind, n, events, levels)
    if sd is None or not 0 < sd < inf:
        raise InvalidQuery(
            "Give sd=, the standard deviation (within groups) that you expect, in the units of "
            "the column."
        )
    if kind == "anova":
        groups = max(levels, 2)
        return PlannedTest(
            kind, n, lambda f: f**2, groups - 1, lambda plan: _error(plan) / sd * sqrt(n / groups)
        )
    two = query.get("group") is not None
    spread = 2.0 if two else 1.0
    return PlannedTest(
        kind, n, lambda d: (d / spread) ** 2, 1, lambda plan: _error(plan) / sd * sqrt(n) / spread
    )


def solved(
    design: PlannedTest,
    forecast: Forecast,
    *,
    effect_size: float | None,
    epsilon: float | None,
    nobs: float | None,
    power: float | None,
    alpha: float,
) -> Power:
    """The one of effect_size, epsilon and power that is None; with all three, nobs. Raises
    InvalidQuery.
    """
    given = {"effect_size": effect_size, "epsilon": epsilon, "power": power}
    absent = [name for name, value in given.items() if value is None]
    if len(absent) > 1 or (not absent and nobs is not None):
        raise InvalidQuery("Give all but one of effect_size, epsilon, power and nobs.")
    if not 0 < alpha < 1 or (power is not None and not alpha < power < 1):
        raise InvalidQuery("alpha lies between 0 and 1, and power between alpha and 1.")
    unknown = absent[0] if absent else "nobs"
    n = float(design.n if nobs is None else nobs)
    values = {"effect_size": effect_size or nan, "epsilon": epsilon or nan, "nobs": n}
    if unknown == "epsilon":
        values["epsilon"] = _least_epsilon(
            design, forecast, effect_size or 0.0, n, alpha, power or 0.0
        )
    ratio = nan if not isfinite(values["epsilon"]) else design.noise(forecast(values["epsilon"]))
    if unknown == "effect_size":
        values["effect_size"] = _root(
            lambda x: design.power(x, n, ratio, alpha) - (power or 0.0),
            1.0 if design.test == "log_rank" else 1e-6,
            _largest(design),
        )
    if unknown == "nobs":
        values["nobs"] = _root(
            lambda x: design.power(effect_size or 0.0, x, ratio, alpha) - (power or 0.0),
            2.0,
            _MOST_RECORDS,
        )
    found = design.power(values["effect_size"], values["nobs"], ratio, alpha)
    return Power(
        test=design.test,
        **values,
        alpha=alpha,
        power=found if unknown == "power" else float(power or nan),
        noise=ratio * sqrt(design.n / values["nobs"]),
        power_without_noise=design.power(values["effect_size"], values["nobs"], 0.0, alpha),
        solved=unknown,
    )


def _largest(design: PlannedTest) -> float:
    return 1 - 1e-9 if design.test in _CORRELATIONS else _LARGEST_EFFECT


def _least_epsilon(
    design: PlannedTest, forecast: Forecast, effect: float, n: float, alpha: float, power: float
) -> float:
    """By bisection of log epsilon, a plan each; NaN where _MOST_EPSILON does not reach the
    power.
    """

    def reached(epsilon: float) -> bool:
        ratio = design.noise(forecast(epsilon))
        return isfinite(ratio) and design.power(effect, n, ratio, alpha) >= power

    low, high = _LEAST_EPSILON, _MOST_EPSILON
    if not reached(high):
        return nan
    while high / low > 1 + _PRECISION:
        middle = sqrt(low * high)
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """NaN where there is none."""
    ends = function(low), function(high)
    if not (isfinite(ends[0]) and isfinite(ends[1])) or ends[0] * ends[1] > 0:
        return nan
    for _ in range(_HALVINGS):
        middle = sqrt(low * high)
        low, high = (middle, high) if function(middle) * ends[0] > 0 else (low, middle)
    return high


def _partial(r: float) -> float:
    if not -1 < r < 1:
        raise InvalidQuery("effect_size is a (partial) correlation here, between -1 and 1.")
    return r**2 / (1 - r**2)


def _of_survival(kind: str, n: int, events: float | None, levels: int) -> PlannedTest:
    """Two groups of one size. The scores' noise is as forecast for scores up to 1, in contrasts of
    length 1."""
    if levels not in {0, 2}:  # a boolean column has no names of levels
        raise InvalidQuery("power of a log_rank test is for a column `by` of two levels.")
    if events is None or not 0 < events <= 1:
        raise InvalidQuery("Give events=, the share of the records for whom you expect the event.")
    share = events * _HALF * (1 - _HALF)
    spread = sqrt(2 * share)  # sd over √n of the statistic: (O − E) of one group, times √2
    return PlannedTest(
        kind, n, lambda h: share * _log(h) ** 2, 1, lambda plan: _error(plan) / (spread * sqrt(n))
    )


def _log(ratio: float) -> float:
    if not ratio > 0:
        raise InvalidQuery("effect_size is a hazard ratio here, above 0.")
    return log(ratio)


def _error(plan: Plan) -> float:
    return float(plan.forecast["privacy_standard_error"])


def _of_term(plan: Plan, term: str | None) -> float:
    ratios = plan.privacy_to_sampling
    names = [name for name in ratios.names if name != "Intercept"]
    chosen = term or (names[0] if len(names) == 1 else None)
    if chosen not in ratios.names:
        raise InvalidQuery(f"Give term=, one of {', '.join(names)}.")
    value = ratios[chosen]
    return inf if value is None else float(value)
