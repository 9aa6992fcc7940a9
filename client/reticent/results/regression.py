# SPDX-License-Identifier: Apache-2.0
"""A released regression, with statsmodels' names. Everything here is free post-processing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reticent import _hypotheses, _hypothesis_grammar
from reticent._errors import NotEstimable, NotFound
from reticent._hypotheses import WaldTest
from reticent._release import Release
from reticent._text import Text, html_table
from reticent.results import after_fit, coefficient_plot
from reticent.results.coefficient_table import HEADER, coefficient_rows, notes, summary_lines
from reticent.results.coefficients import Coefficients, FloatArray
from reticent.results.design import Frame
from reticent.results.effects import Effects
from reticent.results.link import link_of
from reticent.results.prediction import Prediction

_MOSTLY = 0.3
"""Share of a combination's variance that may lie in unresolved directions: that of the server's
flags.
"""


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class RegressionResults(Coefficients):
    """A fitted model with p coefficients, in the units of the data.

    Standard errors, tests and intervals count sampling and privacy noise. Entries that the noise
    has drowned are marked in `estimable`, and may be NaN.

    >>> fit = ds.glm("bedrooms ~ sqft_living + grade", "poisson", epsilon=1.0)
    >>> fit = ds.linear_regression("log(price) ~ log(sqft_living) + C(waterfront)", epsilon=2.0)
    >>> fit = ds.linear_regression("price ~ sqft_living + grade", epsilon=1.0)
    >>> fit.params["grade"], fit.bse["grade"], fit.pvalues["grade"]
    >>> fit.wald_test("grade = 0").pvalue, fit.conf_int(alpha=0.1)
    >>> ds.linear_regression("price ~ grade", fit_statistics=True,
    ...     epsilon=1.0).rsquared_interval
    """

    def wald_test(self, hypotheses: str | Sequence[str]) -> WaldTest:
        """A joint test of linear hypotheses such as "x1 = 0, x2 = x3"; costs nothing.

        Raises InvalidHypothesis, or NotEstimable where a combination that is tested lies in a
        direction that is mostly privacy noise. Of a collinear pair neither coefficient can be
        tested, but what they do together can.
        """
        texts, R, r = _hypothesis_grammar.parse(hypotheses, self.names)
        untestable = [t for t, row in zip(texts, R, strict=True) if not self._can_test(row[None])]
        if untestable or not self._can_test(R):
            raise NotEstimable(
                f"Not identifiable at this epsilon: {', '.join(untestable or texts)}. The data's "
                "information about it "
                "is below the noise. Leave it out of the hypothesis, or fit with a larger "
                "epsilon or "
                "fewer terms."
            )
        params, covariance = np.nan_to_num(self.params), np.nan_to_num(self.cov_params())
        return _hypotheses.wald(texts, R, r, np.asarray(params), covariance)

    @property
    def rsquared(self) -> float:
        """R², released where the question asked for `fit_statistics=True`; of a binomial model
        Efron's. NaN where noise hides it.

        Raises NotFound where it was not asked for.
        """
        return self._statistic("rsquared")

    @property
    def rsquared_adj(self) -> float:
        """R² less what the number of coefficients explains by chance. As `rsquared`."""
        return self._statistic("rsquared_adjusted")

    @property
    def rsquared_interval(self) -> tuple[float, float]:
        """A 95 % interval of a linear model's R², sampling and noise; (NaN, NaN) without one. As
        `rsquared`.
        """
        low, high = self._statistics().get("rsquared_interval") or (float("nan"),) * 2
        return float(low), float(high)

    @property
    def residual_sd(self) -> float:
        """The residual standard deviation, of residuals within three scales. As `rsquared`."""
        return self._statistic("residual_standard_deviation")

    @property
    def dispersion(self) -> float:
        """α of a negative binomial, whose variance is μ + αμ²; NaN for other models."""
        value = self.result.get("dispersion")
        return float("nan") if value is None else float(value)

    @property
    def dispersion_interval(self) -> tuple[float, float]:
        """Of an estimated α at the release's level, sampling and noise; (NaN, NaN) where it was
        given, or hidden by the noise.
        """
        low, high = self.result.get("dispersion_interval") or (float("nan"),) * 2
        return float(low), float(high)

    def f_test(self) -> WaldTest:
        """Of all coefficients but the intercept being 0: a Wald test of the released fit, free; its
        F is statistic / df.

        >>> ds.linear_regression("price ~ sqft_living + grade", epsilon=1.0).f_test().pvalue
        """
        return self.wald_test([f"{name} = 0" for name in self.names if name != "Intercept"])

    def _statistic(self, name: str) -> float:
        value = self._statistics().get(name)
        return float("nan") if value is None else float(value)

    def _statistics(self) -> Mapping[str, Any]:
        if "statistics" not in self.result:
            raise NotFound("This fit was asked for without fit_statistics=True.")
        return dict(self.result["statistics"])

    def predict(self, frame: Frame, *, offset: Any = None, exposure: Any = None) -> FloatArray:
        """(n,) predicted means of new public data: a data frame, a mapping of columns or a list of
        records; costs nothing.

        They are in the units of the response as the formula has it. NaN where a cell is missing or
        the prediction is mostly privacy noise. offset, exposure: of a fit with them, a number or
        one for each row; None: those of the frame's column. Raises InvalidFormula for data that
        lack a column, for a number that is given as a text, and for a level that the fit has not.
        """
        return self.get_prediction(frame, offset=offset, exposure=exposure).predicted_mean

    def get_prediction(
        self, frame: Frame, *, offset: Any = None, exposure: Any = None
    ) -> Prediction:
        """Predictions with standard errors and intervals:
        `get_prediction(frame).summary_frame()`.
        """
        self._check_level()
        given = {"offset": offset, "exposure": exposure}
        return after_fit.prediction(self._fitted(), after_fit.with_given(frame, self.query, given))

    def margins(
        self,
        frame: Frame | None = None,
        *,
        weights: Sequence[float] | None = None,
        dummy: Sequence[str] = (),
    ) -> Effects:
        """Average marginal effects over the rows of a public frame, through the link; costs
        nothing.

        One row of typical or released values gives the effects there. A linear model without
        functions and interactions needs no frame. weights: (n,) of the rows, such as released
        shares. dummy: 0/1 columns whose change from 0 to 1 is meant.
        """
        return after_fit.margins(self._fitted(), frame, weights, dummy)

    def marginal_means(
        self, factor: str, *, at: Mapping[str, float] | None = None, baseline: str | None = None
    ) -> Effects:
        """Linear predictors at each level of a factor, the other factors' levels weighing alike (as
        emmeans).

        at: the values of the numeric columns, the offset's or exposure's too. baseline: the name of
        the level without an indicator.
        """
        self._check_level()
        return after_fit.marginal_means(self._fitted(), factor, at, baseline)

    def contrasts(
        self,
        factor: str,
        method: str = "pairwise",
        *,
        at: Mapping[str, float] | None = None,
        baseline: str | None = None,
    ) -> Effects:
        """Differences of marginal means: "pairwise", or "trt.vs.ctrl" against the first level;
        costs nothing.
        """
        return after_fit.contrasts(self._fitted(), factor, method, at, baseline)

    def _check_level(self) -> None:
        """Raises ValueError where each person has a level of their own, which is not released."""
        if self.result.get("effects") is not None:
            raise ValueError(
                "A fit with person effects has no level to predict from: each person has one, "
                "and none is released. Use "
                "margins or contrasts, which are differences."
            )

    def _fitted(self) -> after_fit.Fitted:
        params, bse, level = (
            np.asarray(self.params),
            np.asarray(self.bse),
            float(self.result["confidence_level"]),
        )
        ends = np.array(self.result["confidence_intervals"], dtype=np.float64)
        family = self.result.get("family")
        spread = family is None and "tau" not in self.result and np.isfinite(self.scale)
        scale = self.scale if spread else None
        wider = after_fit.widening(ends, params, bse, level)
        link = link_of(self.result)
        return after_fit.Fitted(
            self.names,
            params,
            self.cov_params(),
            self._can_test,
            link,
            scale,
            wider,
            self.result.get("baselines"),
        ).with_offsets(self.query)

    def _can_test(self, R: FloatArray) -> bool:
        """By the released directions; by the flags of what R (k, p) names where a release has none.

        A coefficient that the directions tell and that has no interval all the same is decided by
        few records or few events: then nothing that is made of it has one.
        """
        directions = self.result.get("directions")
        named = np.flatnonzero(np.any(R, axis=0))
        if directions is None:
            return all(self.estimable[i] for i in named)
        alone = np.eye(len(self.names))
        withheld = any(
            not self.estimable[i]
            and _hypotheses.unresolved_share(alone[i : i + 1], directions) <= _MOSTLY
            for i in named
        )
        return not withheld and _hypotheses.unresolved_share(R, directions) <= _MOSTLY

    def summary(self, *, exp: bool = False) -> Text:
        """The fit, its guarantee and its charge as a text. exp: exponentials (odds ratios, rate
        ratios).
        """
        lines = summary_lines(self, self._headline(), self._footer(), exp=exp)
        return Text("\n".join(lines))

    def _repr_html_(self) -> str:
        head, foot = Text("\n".join(self._headline())), Text("\n".join(notes(self)))
        end = Text("\n".join(self._footer()))
        table = html_table(HEADER, coefficient_rows(self))
        return "".join([head._repr_html_(), table, foot._repr_html_(), end._repr_html_()])

    def plot(self, ax: Any = None) -> Any:
        """Coefficients with intervals (thick: from sampling alone); needs matplotlib, gives the
        Axes.
        """
        return coefficient_plot.draw(self, ax)

    def check(self) -> None:
        Release.check(self)
        p = len(self.names)
        _ = (self.params, self.bse, self.privacy_bse, self.pvalues, self.nobs, self.scale)
        if "statistics" in self.result:
            _ = (self.rsquared, self.rsquared_adj, self.rsquared_interval, self.residual_sd)
        _ = (self.tuning, self.formula, float(self.result["confidence_level"]))
        shapes = (self.cov_params().shape, self.conf_int().shape, len(self.estimable))
        directions = self.result.get("directions") or []
        if shapes != ((p, p), (p, 2), p) or any(len(d["vector"]) != p for d in directions):
            raise ValueError("the arrays of a regression fit its number of terms")
