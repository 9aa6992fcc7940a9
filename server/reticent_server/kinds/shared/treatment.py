# SPDX-License-Identifier: Apache-2.0
"""Regressions of treatments in time: what did and event_study have in common.

    y_it = a_i + g_t + effects of the treatment + x_itᵀb + e_it

g_t are dummies of periods. Where the unit is a column, a_i are person effects (formula.panel);
where it is a row (repeated cross-sections), dummies of the treated group or of the cohort stand for
them. The fit is that of linear_regression, and so is its privacy: the terms are functions of a row,
their deviations of a person's rows.

Source: Angrist & Pischke (2009), Mostly Harmless Econometrics, ch. 5; on what two-way fixed effects
estimate where persons are treated at different times: Goodman-Bacon (2021); Sun & Abraham (2021).
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from reticent_server.domain.design import Design, EventTime, Term
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.schema import Column
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.fit_plan import FitPlan
from reticent_server.fitting.regression_model import FitGround
from reticent_server.fitting.standard_fit import StandardFit
from reticent_server.formula import Limits, mask_design, parse_formula, person_effects
from reticent_server.formula.labels import quote
from reticent_server.formula.parse import column_of
from reticent_server.kinds.fields import Name, Text
from reticent_server.kinds.shared.columns import declared
from reticent_server.kinds.shared.linear.plan import plan_linear_regression
from reticent_server.kinds.shared.linear.query import LinearRegression
from reticent_server.kinds.shared.linear.response import PublicResponse

Response = Annotated[
    Text, Field(description="The response, a column or a function of one, such as `log(wage)`.")
]
Period = Annotated[
    Name, Field(description="The column of the period, whole numbers; each has an effect.")
]
Covariates = Annotated[
    Text | None,
    Field(description="Further terms of the formula grammar, such as `x1 + C(g)`."),
]
Loss = Annotated[
    Literal["squared", "huber"],
    Field(description="As of linear_regression: squared is least squares."),
]

MOST_TERMS = Limits().max_columns - 1
"""Beside the intercept."""


def too_many_terms(number: int) -> InvalidQuery:
    """The error of a question that gives more terms than a design may have."""
    return InvalidQuery(
        f"The question gives {number} terms and may give {MOST_TERMS}: use fewer periods, "
        "cohorts or covariates, or coarser "
        "periods."
    )


@dataclass(frozen=True, slots=True, eq=False)
class TreatmentPlan(FitPlan[PublicResponse]):
    """A planned regression of a treatment. said: what its coefficients estimate. caution: a
    sentence of the reply."""

    said: str = ""
    caution: str = ""

    @classmethod
    def of(cls, fit: FitPlan[PublicResponse], **more: Any) -> Self:
        """The plan of a fit, with more fields."""
        return cls(**{f.name: getattr(fit, f.name) for f in fields(FitPlan) if f.init}, **more)

    def result(self, ground: FitGround[PublicResponse], fit: StandardFit) -> dict[str, Any]:
        found = FitPlan.result(self, ground, fit)
        return found | {
            "estimand": f"{self.said}. {found['estimand']}",
            "warnings": [*found["warnings"], *([self.caution] if self.caution else [])],
        }


@dataclass(frozen=True, slots=True)
class TreatmentQuestion:
    """What did and event_study ask alike, as LinearRegression's fields have it. reads: the columns
    of the treatment, of which a missing cell takes a row out of use but in `never`."""

    response: str
    time: str
    covariates: str | None
    where: str | None
    loss: Literal["squared", "huber"]
    confidence_level: float
    reads: tuple[str, ...]
    never: tuple[str, ...] = ()

    def fit(
        self, facts: DatasetFacts, effects: Sequence[Term], levels: Sequence[Term], rho: int
    ) -> FitPlan[PublicResponse]:
        """The planned fit of the terms `effects`; `levels` stand for person effects where there are
        none. Raises InvalidQuery, InvalidFormula."""
        design = self._design(facts)
        many = facts.schema.unit.several_rows
        terms = (*effects, *(() if many else levels), *design.terms)
        if len(terms) > MOST_TERMS:
            raise too_many_terms(len(terms))
        design = replace(design, terms=terms)
        asked = LinearRegression(
            "y ~ x",  # the design is given; the model is asked for the loss and the level
            loss=self.loss,
            confidence_level=self.confidence_level,
        )
        design = person_effects(design, facts.schema) if many else design
        return plan_linear_regression(facts, design, asked, rho)

    def _design(self, facts: DatasetFacts) -> Design:
        """Response, periods and covariates, and the columns of the treatment among those read."""
        whole_numbers(facts, self.time)
        tail = f" + {self.covariates}" if self.covariates else ""
        text = f"{self.response} ~ C({quote(self.time)}){tail}"
        design = parse_formula(text, facts.schema, self.where, profile=facts.profile)
        mask = mask_design(self.reads, facts.schema, None)
        if design.response is not None and column_of(design.response.factors[0]) in self.reads:
            raise InvalidQuery("y is a column of the treatment: name another one.")
        missing = [
            n for n in (*design.missing_columns, *mask.missing_columns) if n not in self.never
        ]
        return replace(
            design,
            columns=tuple(dict.fromkeys((*design.columns, *self.reads))),
            missing_columns=tuple(dict.fromkeys(missing)),
        )


def whole_numbers(facts: DatasetFacts, name: str) -> Column:
    """The declared column of whole numbers. Raises InvalidQuery."""
    column = declared(facts, name)
    if not (column.kind.is_whole and column.kind.has_mean):
        raise InvalidQuery(
            f"{name} is not declared as integer, as periods and times of treatment are: name a "
            "column of whole numbers."
        )
    return column


def indicator(name: str, event: EventTime) -> Term:
    """The term of a dummy."""
    return Term(name, (event,), 0.0, 1.0, dummy=True)
