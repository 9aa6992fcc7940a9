# SPDX-License-Identifier: Apache-2.0
"""A model's estimates averaged over blocks of records: subsample and aggregate."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from reticent import _hypotheses, _hypothesis_grammar
from reticent._errors import NotEstimable
from reticent._hypotheses import WaldTest
from reticent._text import Text, text_table
from reticent.results.after_fit import Fitted
from reticent.results.coefficient_table import coefficient_cells, notes
from reticent.results.regression import RegressionResults

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class BlockResults(RegressionResults):
    """Averaged estimates of a model, in the units of the data; read like a regression.

    Each estimate was released by itself: nothing is known of the covariances between them.

    >>> fit = ds.subsample_aggregate("linear_regression", "price ~ grade", epsilon=2.0)
    >>> fit.params["grade"], fit.bse["grade"], fit.block_quartiles["grade"]
    """

    @property
    def blocks(self) -> int:
        """Number of blocks; each had `rows_per_block` records, or one more."""
        return int(self.result["blocks"])

    @property
    def rows_per_block(self) -> int:
        """How many records each of the disjoint blocks has."""
        return int(self.result["rows_per_block"])

    @property
    def block_quartiles(self) -> dict[str, tuple[float, float]]:
        """The released quartiles of each estimate over blocks."""
        pairs = self.result["block_quartiles"]
        return {k: (float(a), float(b)) for k, (a, b) in zip(self.names, pairs, strict=True)}

    @property
    def bias_correction(self) -> str:
        """Of each block's estimate: "firth", "jackknife" or "none"."""
        return str(self.result["bias_correction"])

    @property
    def scale(self) -> float:
        """NaN: no scale of the residuals is released."""
        return float("nan")

    @property
    def tuning(self) -> float:
        """The tuning constant c of the model, NaN where it has none."""
        found = self.result["tuning"]
        return float("nan") if found is None else float(found)

    @property
    def formula(self) -> str:
        """The model's formula, or the column whose location and scale these are."""
        model = self.query["model"]
        return str(model.get("formula") or model["column"])

    def cov_params(self) -> FloatArray:
        """(p, p) with the variances on the diagonal, NaN elsewhere."""
        covariance = np.full((len(self.names), len(self.names)), np.nan)
        np.fill_diagonal(covariance, np.asarray(self.bse) ** 2)
        return covariance

    def _joint_quantile(self, level: float) -> float:
        """Bonferroni's, which needs no covariance."""
        count = sum(self.estimable)
        return float(ndtri(1 - (1 - level) / (2 * count))) if count else float("nan")

    def wald_test(self, hypotheses: str | Sequence[str]) -> WaldTest:
        """A test of one hypothesis about one estimate, such as "x1 = 0"; costs nothing.

        Raises InvalidHypothesis, or NotEstimable for hypotheses that need a covariance.
        """
        texts, R, r = _hypothesis_grammar.parse(hypotheses, self.names)
        used = np.any(R, axis=0)
        if len(R) > 1 or used.sum() != 1 or not np.array(self.estimable)[used].all():
            raise NotEstimable(
                "Only one estimable coefficient at a time can be tested here: covariances between "
                "them are not released."
            )
        covariance = np.diag(np.asarray(self.bse) ** 2)
        return _hypotheses.wald(texts, R, r, np.asarray(self.params), covariance)

    def _fitted(self) -> Fitted:
        raise NotEstimable(
            "Predictions, margins and contrasts need the covariances between estimates, which "
            "blocks do not release."
        )

    def summary(self, *, exp: bool = False) -> Text:
        """The estimates, the guarantee and the charge as a text. exp: exponentials of the
        estimates.
        """
        table = text_table(*coefficient_cells(self, exp=exp))
        facts = (
            f"Records: {self.nobs:,}   blocks: {self.blocks:,} of {self.rows_per_block:,} records"
            f"   bias correction: {self.bias_correction}"
        )
        lines = [*self._headline(), facts, "", *table, "", *notes(self), ""]
        return Text("\n".join([*lines, *self._footer()]))

    def check(self) -> None:
        RegressionResults.check(self)
        _ = (self.blocks, self.rows_per_block, self.block_quartiles, self.bias_correction)
