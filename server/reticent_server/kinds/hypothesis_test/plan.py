# SPDX-License-Identifier: Apache-2.0
"""A planned test of a linear hypothesis: one private fit, and post-processing of what it released.

Wald and likelihood-ratio-type tests fit the whole model; a score test fits it under the hypothesis
and takes the efficient score from the last release (fitting.restriction). Every value that leaves
the table is one of the fit's parts: privacy is the fit's (fitting.fit_plan). Without a hypothesis
every term of the formula is tested (Wald or LR), from the one fit.

Source: Heritier & Ronchetti (1994); Avella-Medina (2021), §4; Cantoni & Ronchetti (2001), §4.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from reticent_server.domain.hypothesis import LinearHypothesis
from reticent_server.domain.plan import Outline, Planned, Recipe
from reticent_server.domain.plan_of_plans import PlannedOn
from reticent_server.domain.precision import ForecastPrecision
from reticent_server.domain.steps import FloatArray
from reticent_server.fitting.coding import Coding
from reticent_server.fitting.empty_levels import places_of
from reticent_server.fitting.fit_plan import FitPlan
from reticent_server.fitting.report import back_transform, reported
from reticent_server.fitting.restriction import Restriction
from reticent_server.fitting.results import RegressionResult, Share
from reticent_server.fitting.standard_fit import StandardFit
from reticent_server.kinds.hypothesis_test.statistics import (
    FitUnderTest,
    HypothesisOutcome,
    likelihood_ratio,
    wald,
)
from reticent_server.kinds.hypothesis_test.terms import term_hypotheses

TestName = Literal["wald", "score", "lr"]
MANY, NOISY = 5, 2.0
"""Hypotheses of one test, and the forecast noise in sampling errors, from which on the noise of
their covariance may make the statistic's law wider than it is taken for. In simulations tests of
four kept their level at a noise of 3; tests of ten did so at 1 and not at 2.6.
"""
_CROWDED = (
    "A test of five or more hypotheses at once may reject more often than its level says where the "
    "noise is forecast to be twice the sampling error or more, as here: in 12 % of simulated "
    "tables at 5 %, with ten hypotheses and 2.6 times. Test fewer at once, or ask with a higher "
    "epsilon."
)
_REFERENCES = "Heritier & Ronchetti (1994); Avella-Medina (2021), section 4"


@dataclass(frozen=True, slots=True, kw_only=True)
class TermTest:
    """One term of a table. statistic and p_value null: not identifiable."""

    term: str
    statistic: float | None
    df: float
    p_value: Share | None
    estimable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class JointTest:
    """A test of `hypotheses` together. statistic and p_value null: not identifiable. fit: of the
    whole model."""

    test: TestName
    n: int
    warnings: list[str]
    hypotheses: list[str]
    statistic: float | None
    df: float
    p_value: Share | None
    estimable: bool
    fit: RegressionResult | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TermTable:
    """A test of each of the model's terms. fit: of the whole model."""

    test: TestName
    n: int
    warnings: list[str]
    table: list[TermTest]
    fit: RegressionResult | None = None


@dataclass(frozen=True, slots=True)
class HypothesisTestPlan(PlannedOn):
    """A planned test. hypothesis None: a table of the model's terms."""

    model: FitPlan[Any]
    test: TestName
    hypothesis: LinearHypothesis | None

    @property
    def base(self) -> Planned:
        """The fit."""
        return self.model

    @property
    def fit(self) -> FitPlan[Any]:
        """The fit that the test is made of."""
        return self.model

    def expected_ms(self, n: int) -> float:
        return self.model.expected_ms(n)

    @property
    def outline(self) -> Outline:
        return replace(
            self.base.outlined,
            mechanism=f"{self.test} test from a {self.model.mechanism}",
            reference=f"{_REFERENCES}; {self.model.reference}",
        )

    @property
    def precision(self) -> ForecastPrecision:
        """The expected precision of the coefficients of the fit."""
        return self.model.precision

    @property
    def forecast(self) -> Mapping[str, Any]:
        """The fit's forecast, and the hypotheses that are tested."""
        told = self.model.forecast
        texts = [list(h.texts) for _, h in self.hypotheses]
        return {**told, "notes": [*told["notes"], *self._crowded()], "hypotheses": texts}

    @property
    def hypotheses(self) -> list[tuple[str, LinearHypothesis]]:
        """(name, hypothesis) of every test."""
        if self.hypothesis is not None:
            return [(", ".join(self.hypothesis.texts), self.hypothesis)]
        design = self.model.design
        return term_hypotheses(design.terms, design.intercept)

    def run(self) -> Recipe:
        """The recipe; its result has the test, or the table, and the fit's result with it."""
        restrict = self._restriction if self.test == "score" else None
        ground, fitted = yield from self.model.fitted(restrict)
        result = self.model.result(ground, fitted)
        fit = tested_fit(ground.coding, fitted, self.model.design.names)
        outcomes = [(name, self._outcome(fit, h)) for name, h in self._tested(ground.coding)]
        head: dict[str, Any] = {
            "test": self.test,
            "n": result["n"],
            "warnings": [*result["warnings"], *self._crowded()],
            "fit": None if self.test == "score" else RegressionResult(**result),
        }
        if self.hypothesis is None:
            table = [TermTest(term=name, **_shown(o)) for name, o in outcomes]
            return TermTable(**head, table=table)
        texts = list(self.hypothesis.texts)
        return JointTest(**head, hypotheses=texts, **_shown(outcomes[0][1]))

    def _tested(self, coding: Coding) -> list[tuple[str, LinearHypothesis]]:
        """(name, hypothesis) of every test; of a table about the coefficients that the fit has."""
        if self.hypothesis is not None:
            return self.hypotheses
        E = places_of(self.model.design.names, coding.design.names)
        return [(name, _about(hypothesis, E)) for name, hypothesis in self.hypotheses]

    def _crowded(self) -> list[str]:
        """From public facts alone."""
        df = max(len(h.rows) for _, h in self.hypotheses)
        crowded = df >= MANY and self.model.forecast_fit.worst >= NOISY
        return [_CROWDED] if crowded and self.test != "score" else []

    def _outcome(self, fit: FitUnderTest, hypothesis: LinearHypothesis) -> HypothesisOutcome:
        test = likelihood_ratio if self.test == "lr" else wald
        return test(fit, hypothesis)

    def _restriction(self, coding: Coding) -> Restriction | None:
        """The hypothesis about β = Lθ + o as one about θ; None where it is about a coefficient that
        the fit leaves out, of which no test is made."""
        if self.hypothesis is None:
            raise ValueError("a score test has a hypothesis")
        back, R = back_transform(coding), np.array(self.hypothesis.rows)
        E = places_of(self.model.design.names, coding.design.names)
        if R[:, ~E.any(axis=1)].any():
            return None
        R = R @ E
        values = np.array(self.hypothesis.values) - R @ back.offset
        rows = R @ back.matrix
        unit = np.linalg.norm(rows, axis=1)
        return Restriction(rows / unit[:, None], values / unit)


def tested_fit(coding: Coding, fitted: StandardFit, names: Sequence[str] | None) -> FitUnderTest:
    """A released fit in the units of the data, its coefficients among all `names`; of those that
    it leaves out no test is made."""
    back = back_transform(coding)
    E = places_of(names or coding.design.names, coding.design.names)
    return FitUnderTest(
        coefficients=E @ back.coefficients(fitted.theta),
        covariance=E @ back.covariance(fitted.sampling + fitted.privacy) @ E.T,
        inverse_information=E @ back.covariance(fitted.inverse) @ E.T,
        n=fitted.count,
        directions=fitted.directions.mapped(E @ back.matrix),
        barred=~E.any(axis=1) | ((E @ reported(coding, fitted).flags.barred) > 0),
    )


def _about(hypothesis: LinearHypothesis, E: FloatArray) -> LinearHypothesis:
    """What a hypothesis says of the coefficients of a fit, which stand at E (q, q′) among those
    that were asked for (places_of); all of it where that is nothing."""
    kept = E.any(axis=1)
    rows = [i for i, row in enumerate(hypothesis.rows) if not np.any(np.array(row)[~kept])]
    if not rows or len(rows) == len(hypothesis.rows):
        return hypothesis
    return replace(
        hypothesis,
        texts=tuple(hypothesis.texts[i] for i in rows),
        rows=tuple(hypothesis.rows[i] for i in rows),
        values=tuple(hypothesis.values[i] for i in rows),
    )


def _shown(outcome: HypothesisOutcome) -> dict[str, Any]:
    return {
        "statistic": outcome.statistic,
        "df": outcome.df,
        "p_value": outcome.p_value,
        "estimable": outcome.statistic is not None,
    }
