# SPDX-License-Identifier: Apache-2.0
"""A released fit with the members of statsmodels' results: Series and frames with patsy's names."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reticent import _optional
from reticent._errors import NotPrivate
from reticent._hypotheses import WaldTest
from reticent._shapes.formulas import names_in_patsy, of_statsmodels
from reticent._shapes.refusals import refuse
from reticent._text import Text
from reticent.results.design import Frame
from reticent.results.effects import Effects
from reticent.results.prediction import Prediction
from reticent.results.regression import RegressionResults


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class FittedModel:
    """fit: the release, with everything that it has. Everything here is free.

    nobs is the data set's public number of records: how many are in use is private.
    """

    fit: RegressionResults

    @property
    def names(self) -> list[str]:
        """(p,) as patsy has them: C(g)[T.b]."""
        return names_in_patsy(self.fit.names)

    @property
    def params(self) -> Any:
        """(p,) a Series; needs pandas."""
        return self._series(self.fit.params)

    @property
    def bse(self) -> Any:
        """(p,) standard errors of sampling and privacy noise; NaN where a coefficient is not
        identifiable.
        """
        return self._series(self.fit.bse)

    @property
    def tvalues(self) -> Any:
        """(p,)"""
        return self._series(self.fit.tvalues)

    @property
    def pvalues(self) -> Any:
        """(p,)"""
        return self._series(self.fit.pvalues)

    @property
    def nobs(self) -> float:
        """The public number of records of the data set; those in use are private."""
        return float(self.fit.nobs)

    @property
    def df_model(self) -> float:
        """Coefficients without the intercept."""
        return float(sum(name != "Intercept" for name in self.fit.names))

    @property
    def df_resid(self) -> float:
        """nobs less the coefficients; with persons the least degrees of freedom of an interval."""
        own = self.fit.df_resid
        return self.nobs - len(self.fit.names) if own is None else float(np.min(own))

    @property
    def rsquared(self) -> float:
        """Where the fit has `fit_statistics`; NaN where noise hides it."""
        return self.fit.rsquared

    @property
    def rsquared_adj(self) -> float:
        """As rsquared."""
        return self.fit.rsquared_adj

    @property
    def scale(self) -> float:
        """The squared residual standard deviation of a linear model, the released scale of
        another.
        """
        if "statistics" in self.fit.result:
            return self.fit.residual_sd**2
        return self.fit.scale

    @property
    def fvalue(self) -> float:
        """Of all slopes being 0, from the released covariance."""
        test = self.fit.f_test()
        return float(test.statistic / test.df)

    @property
    def f_pvalue(self) -> float:
        """Of fvalue."""
        return float(self.fit.f_test().pvalue)

    def conf_int(self, alpha: float = 0.05, cols: Sequence[int] | None = None) -> Any:
        """(p, 2) a frame with the columns 0 and 1; needs pandas."""
        frame = _optional.pandas().DataFrame(self.fit.conf_int(alpha), index=self.names)
        return frame if cols is None else frame.iloc[list(cols)]

    def cov_params(self) -> Any:
        """(p, p) a frame; needs pandas."""
        return _optional.pandas().DataFrame(
            self.fit.cov_params(), index=self.names, columns=self.names
        )

    def predict(
        self, exog: Frame | None = None, *, offset: Any = None, exposure: Any = None
    ) -> Any:
        """(n,) a Series of predicted means of a public frame; needs pandas. Raises NotPrivate
        without one.
        """
        means = self.fit.predict(_public(exog), offset=offset, exposure=exposure)
        return _optional.pandas().Series(means, index=_index(exog))

    def get_prediction(
        self, exog: Frame | None = None, *, offset: Any = None, exposure: Any = None
    ) -> Prediction:
        """Predictions with intervals: `summary_frame(alpha)`."""
        return self.fit.get_prediction(_public(exog), offset=offset, exposure=exposure)

    def wald_test(self, hypotheses: str | Sequence[str], **how: Any) -> WaldTest:  # noqa: ARG002 - use_f, scalar
        """Joint linear hypotheses as texts, such as "x1 = 0, x2 = x3"."""
        texts = [hypotheses] if isinstance(hypotheses, str) else list(hypotheses)
        if not all(isinstance(text, str) for text in texts):
            raise NotPrivate(
                'Write hypotheses as texts, such as "x1 = 0, x2 = x3", not as matrices.'
            )
        return self.fit.wald_test([of_statsmodels(text) for text in texts])

    def t_test(self, hypotheses: str | Sequence[str]) -> WaldTest:
        """As wald_test."""
        return self.wald_test(hypotheses)

    def f_test(self, hypotheses: str | Sequence[str]) -> WaldTest:
        """As wald_test."""
        return self.wald_test(hypotheses)

    def margins(self, frame: Frame | None = None, **how: Any) -> Effects:
        """Average marginal effects over a public frame, in place of get_margeff."""
        return self.fit.margins(frame, **how)

    def summary(self, **how: Any) -> Text:  # noqa: ARG002 - titles and names of columns
        """The release's own summary; its first line says what is estimated."""
        return self.fit.summary()

    def summary2(self, **how: Any) -> Text:
        """As summary."""
        return self.summary(**how)

    def __getattr__(self, name: str) -> Any:
        refuse(name)

    def __repr__(self) -> str:
        return str(self.fit.summary())

    def _series(self, values: Any) -> Any:
        return _optional.pandas().Series(np.asarray(values), index=self.names)


def _public(exog: Frame | None) -> Frame:
    if exog is None:
        raise NotPrivate(
            "predict() of the records is private: give a frame of public values, predict(frame)."
        )
    return exog


def _index(exog: Any) -> Any:
    return getattr(exog, "index", None) if hasattr(exog, "columns") else None
