# SPDX-License-Identifier: Apache-2.0
"""Meta-analysis of released estimates: y_k with variances v_k that count sampling and noise.

Fixed: weights 1/v_k, μ̂ = Σw_ky_k/Σw_k, Var = 1/Σw_k; Q = Σw_k(y_k − μ̂)², I² = max(0,
1 − (K−1)/Q). Random: y_k ~ N(μ, v_k + τ²), weights 1/(v_k + τ²), τ² by DerSimonian & Laird (1986);
by Paule & Mandel (1982), Q(τ²) = K − 1; or by REML, the maximum over τ² ≥ 0 of the restricted
likelihood (Viechtbauer 2005). Hartung–Knapp (2001): Var = Σw_k(y_k − μ̂)²/((K−1)Σw_k) and t_{K−1};
not less than the plain variance (Röver, Knapp & Friede 2015), as noise may make estimates agree by
chance.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log, sqrt
from typing import Any

import numpy as np
from scipy.special import chdtrc, ndtri, stdtr, stdtrit

from reticent import _drawing, _optional
from reticent._errors import InvalidQuery, NotEstimable
from reticent._study.moments import FloatArray
from reticent._text import Text

_WIDE = 100.0
"""Times the largest spread or variance that τ² is looked for below: beyond any estimate of it."""
_HALVINGS = 200
"""Of an interval for τ²: to the last bit of a double."""
_GRID = 400
"""Points at which the restricted likelihood is looked at first: its maxima are wider than a
step."""


@dataclass(frozen=True, slots=True, repr=False)
class MetaAnalysis:
    """One number of several sites. estimates, bse (K,): as released; estimate, se: the summary;
    tau2: variance between sites; Q with df = K − 1, its p-value and I² in [0, 1]; hartung_knapp.

    >>> found = reticent.meta({"north": fit_a, "south": fit_b}, "grade")
    >>> found.estimate, found.conf_int(), found.I2, found.plot()
    """

    sites: tuple[str, ...]
    estimates: FloatArray
    bse: FloatArray
    estimate: float
    se: float
    tau2: float
    Q: float
    method: str
    hartung_knapp: bool
    name: str = "estimate"

    @property
    def df(self) -> int:
        """Degrees of freedom of Q: the number of sites less 1."""
        return len(self.sites) - 1

    @property
    def pvalue_Q(self) -> float:  # noqa: N802 - the statistic's name
        """Of "one value at all sites"; low power with few sites or much noise."""
        return float(chdtrc(self.df, self.Q))

    @property
    def I2(self) -> float:  # noqa: N802 - the statistic's name
        """The share of the estimates' spread that sampling and noise do not explain."""
        return max(0.0, 1 - self.df / self.Q) if self.Q > 0 else 0.0

    @property
    def pvalue(self) -> float:
        """Two-sided, of "0"."""
        t = -abs(self.estimate) / self.se
        return float(2 * (stdtr(self.df, t) if self.hartung_knapp else stdtr(np.inf, t)))

    def conf_int(self, alpha: float = 0.05) -> tuple[float, float]:
        """(lower, upper): of t with K − 1 degrees of freedom with Hartung–Knapp, else normal."""
        half = self._quantile(alpha) * self.se
        return self.estimate - half, self.estimate + half

    def prediction_interval(self, alpha: float = 0.05) -> tuple[float, float]:
        """(lower, upper) for the value of a new site: t_{K−2} (Higgins, Thompson & Spiegelhalter
        2009). Raises NotEstimable with fewer than three sites.
        """
        if self.df < 2:
            raise NotEstimable("A prediction interval needs three sites or more.")
        half = float(stdtrit(self.df - 1, 1 - alpha / 2)) * sqrt(self.se**2 + self.tau2)
        return self.estimate - half, self.estimate + half

    def _quantile(self, alpha: float) -> float:
        return float(
            stdtrit(self.df, 1 - alpha / 2) if self.hartung_knapp else ndtri(1 - alpha / 2)
        )

    def to_frame(self) -> Any:
        """A pandas.DataFrame: a row a site and the summary, with 95 % intervals; needs pandas."""
        low, high = self._ends().T
        values = np.append(self.estimates, self.estimate)
        columns = {"estimate": values, "bse": np.append(self.bse, self.se)}
        names = [*self.sites, f"all ({self.method})"]
        return _optional.pandas().DataFrame(columns | {"lower": low, "upper": high}, index=names)

    def _ends(self) -> FloatArray:
        half = float(ndtri(0.975)) * self.bse
        own = np.column_stack([self.estimates - half, self.estimates + half])
        return np.vstack([own, self.conf_int()])

    def summary(self) -> Text:
        """A line a site, the summary, and heterogeneity."""
        values = np.append(self.estimates, self.estimate)
        rows = zip([*self.sites, "all"], values, self._ends(), strict=True)
        lines = [f"{name}: {x:.4g} [{low:.4g}, {high:.4g}]" for name, x, (low, high) in rows]
        knapp = ", Hartung–Knapp" if self.hartung_knapp else ""
        spread = (
            f"tau² = {self.tau2:.4g}, I² = {self.I2:.0%}, Q = {self.Q:.3g} on {self.df} df, "
            f"p = {self.pvalue_Q:.3g}"
        )
        title = f"Meta-analysis of {self.name} ({self.method}{knapp}), errors count noise"
        return Text("\n".join([title, *lines, spread]))

    def __repr__(self) -> str:
        return str(self.summary())

    def plot(self, ax: Any = None) -> Any:
        """A forest plot; needs matplotlib, gives the Axes."""
        values = np.append(self.estimates, self.estimate)
        return _drawing.intervals((*self.sites, "all"), values, self._ends(), ax)


def meta(
    estimates: Mapping[str, Any],
    term: str | None = None,
    *,
    method: str = "REML",
    hartung_knapp: bool | None = None,
) -> MetaAnalysis:
    """Of one number that several sites have released. Free.

    estimates: by site, a release (a fit with `term`, or a single estimate with `value` and `bse`)
    or a pair (estimate, standard error). method: "fixed", "DL", "PM" or "REML". hartung_knapp: for
    all but "fixed" unless told otherwise. Raises InvalidQuery for fewer than two sites and
    NotEstimable where a site's number has no interval.

    >>> reticent.meta({"A": (1.2, 0.3), "B": (0.8, 0.4)}).summary()
    """
    if len(estimates) < 2:
        raise InvalidQuery("A meta-analysis needs the estimates of two sites or more.")
    if method not in _TAU2:
        raise InvalidQuery(f"The method is one of {', '.join(_TAU2)}.")
    pairs = [_pair(site, found, term) for site, found in estimates.items()]
    y, s = np.array(pairs, dtype=np.float64).T
    knapp = method != "fixed" if hartung_knapp is None else hartung_knapp
    return _analysed(tuple(estimates), y, s, method, knapp, term or "estimate")


def _analysed(
    sites: tuple[str, ...], y: FloatArray, s: FloatArray, method: str, knapp: bool, name: str
) -> MetaAnalysis:
    v = s**2
    tau2 = _TAU2[method](y, v)
    w = 1 / (v + tau2)
    centre, variance = float(w @ y / w.sum()), 1 / float(w.sum())
    if knapp:
        spread = float(w @ (y - centre) ** 2) / (len(y) - 1)
        variance *= max(spread, 1.0)
    return MetaAnalysis(
        sites, y, s, centre, sqrt(variance), tau2, _cochran(y, v, 0.0), method, knapp, name
    )


def _cochran(y: FloatArray, v: FloatArray, tau2: float) -> float:
    """Q(τ²)."""
    w = 1 / (v + tau2)
    return float(w @ (y - w @ y / w.sum()) ** 2)


def _dersimonian_laird(y: FloatArray, v: FloatArray) -> float:
    w = 1 / v
    excess = _cochran(y, v, 0.0) - (len(y) - 1)
    return max(0.0, excess / float(w.sum() - (w**2).sum() / w.sum()))


def _paule_mandel(y: FloatArray, v: FloatArray) -> float:
    """Q(τ²) falls in τ²: bisection."""
    if _cochran(y, v, 0.0) <= len(y) - 1:
        return 0.0
    low, high = 0.0, _WIDE * max(float(np.ptp(y)) ** 2, float(v.max()))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        above = _cochran(y, v, middle) > len(y) - 1
        low, high = (middle, high) if above else (low, middle)
    return (low + high) / 2


def _reml(y: FloatArray, v: FloatArray) -> float:
    from scipy.optimize import minimize_scalar  # noqa: PLC0415 (a tenth of a second to import)

    def lost(tau2: float) -> float:
        """−2 times the restricted log-likelihood."""
        w = 1 / (v + tau2)
        return -float(np.log(w).sum()) + log(float(w.sum())) + _cochran(y, v, tau2)

    top = _WIDE * max(float(np.ptp(y)) ** 2, float(v.max()))
    grid = np.append(0.0, top * np.geomspace(1e-8, 1.0, _GRID))
    k = int(np.argmin([lost(x) for x in grid]))
    ends = (float(grid[max(k - 1, 0)]), float(grid[min(k + 1, _GRID)]))
    found = minimize_scalar(lost, bounds=ends, method="bounded", options={"xatol": ends[1] * 1e-10})
    return float(found.x) if found.fun < lost(0.0) else 0.0


_TAU2: Mapping[str, Callable[[FloatArray, FloatArray], float]] = {
    "fixed": lambda _y, _v: 0.0,
    "DL": _dersimonian_laird,
    "PM": _paule_mandel,
    "REML": _reml,
}


def _pair(site: str, found: Any, term: str | None) -> Sequence[float]:
    """(estimate, standard error)."""
    if term is None and hasattr(found, "bse"):
        value, error = float(found.value), float(found.bse)
    elif term is None:
        value, error = map(float, found)
    else:
        at = list(found.names).index(term) if term in found.names else -1
        if at < 0:
            raise InvalidQuery(f"{site}: there is no {term}; it has {', '.join(found.names)}.")
        shown = bool(np.isfinite(np.asarray(found.conf_int())[at]).all())
        value, error = float(found.params[term]), float(found.bse[term]) if shown else np.nan
    if not (np.isfinite(value) and np.isfinite(error) and error > 0):
        raise NotEstimable(
            f"{site}: its number has no interval, so its error is not known. Leave the site out, "
            "or ask it again with a larger epsilon."
        )
    return value, error
