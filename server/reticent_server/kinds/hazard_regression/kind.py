# SPDX-License-Identifier: Apache-2.0
"""The kind `hazard_regression`."""

from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from annotated_types import Ge, Le, MaxLen, MinLen
from pydantic import Field, Strict

from reticent_server.domain.cost import RHO_UNITS, PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.query import Query
from reticent_server.errors import InvalidQuery
from reticent_server.kinds.base import Kind, QuestionGroup
from reticent_server.kinds.fields import By, Level, Name, Number, Text, Where
from reticent_server.kinds.hazard_regression.by_group import GroupHazardFits, plan_hazards_by
from reticent_server.kinds.hazard_regression.partial_plan import PartialPlan, plan_partial
from reticent_server.kinds.hazard_regression.proportionality import MOST_BINS
from reticent_server.kinds.hazard_regression.report import HazardFit
from reticent_server.kinds.hazard_regression.surv import MOST_INTERVALS, Hazards, parse_hazards
from reticent_server.kinds.shared.by import ByPlan

ROWS_OF_PERSONS = (
    "A hazard regression is about one row a person: covariates that change in time (rows from "
    "start to stop) are not answered. Ask with features of persons (`persons`): "
    "{start}{time}=max({time}), {event}=any({event}), and each covariate at the start, first(x, "
    "by={order}), or at a landmark L, last(x, by={order}, where={order} <= L), of those with "
    "{time} > L."
)


@dataclass(frozen=True, slots=True)
class HazardRegression(Query):
    """How the hazard of the event depends on the regressors (proportional hazards): hazard ratios,
    predicted curves.
    """

    formula: Annotated[
        Text,
        Field(
            description="Such as `Surv(time, event) ~ x1 + C(g)`, or `Surv(start, time, event) ~ "
            "…` where persons come under observation at `start`."
        ),
    ]
    cuts: Annotated[
        Annotated[tuple[Number, ...], MinLen(1), MaxLen(MOST_INTERVALS)] | None,
        Field(
            description="The ends of the intervals in which the baseline hazard is constant, "
            "increasing, above 0; null: planned from the profile and epsilon."
        ),
    ] = None
    where: Where = None
    confidence_level: Level = 0.95
    offset: Annotated[
        Name | None,
        Field(
            description=(
                "A numeric column that is added to the logarithm of the hazard, with the "
                "coefficient 1."
            )
        ),
    ] = None
    exposure: Annotated[
        Name | None,
        Field(
            description="A column that multiplies the hazard, such as a number of parts at risk, "
            "with a lower bound above 0: the offset is its logarithm."
        ),
    ] = None
    target: Annotated[
        Literal["robust", "likelihood"],
        Field(
            description="likelihood: what Cox's regression estimates on all records; the few "
            "largest scores are cut, and intervals allow for it. robust: persons far from the "
            "middle count less, which moves what is estimated."
        ),
    ] = "robust"
    strata: Annotated[
        Name | None,
        Field(
            description="A column of levels, each with a baseline hazard of its own, as "
            "`strata(g)` in the formula; it has no coefficient."
        ),
    ] = None
    proportionality: Annotated[
        Annotated[int, Strict(), Ge(2), Le(MOST_BINS)] | None,
        Field(
            description="Also test whether hazards are proportional, with coefficients by so many "
            "bins of time (2 to 8, of about as many events each; 3 for a start), for a quarter of "
            "the cost; null: no test."
        ),
    ] = None
    by: By = None
    kind: Literal["hazard_regression"] = field(default="hazard_regression", kw_only=True)

    def other_target(self) -> "HazardRegression | None":
        """Cox's partial likelihood beside a robust fit, and the reverse."""
        target: Literal["robust", "likelihood"] = (
            "likelihood" if self.target == "robust" else "robust"
        )
        return replace(self, target=target)


def _asked(facts: DatasetFacts, query: HazardRegression, rho: int, where: str | None) -> Hazards:
    return parse_hazards(
        query.formula,
        facts,
        query.cuts,
        where,
        rho / RHO_UNITS,
        offset=query.offset,
        exposure=query.exposure,
        strata=query.strata,
    )


def _plan(facts: DatasetFacts, query: HazardRegression, offer: PrivacyCost) -> PartialPlan | ByPlan:
    asked = _asked(facts, query, offer.rho, query.where)
    if facts.schema.unit.max_rows > 1:
        raise InvalidQuery(_of_persons(asked))
    robust, bins = query.target == "robust", query.proportionality or 0
    if query.by is not None:
        used = _asked(facts, query, offer.rho, None).design.columns
        level, rho = query.confidence_level, offer.rho
        return plan_hazards_by(facts, asked, query.by, used, level, rho, robust=robust, bins=bins)
    return plan_partial(facts, asked, query.confidence_level, offer.rho, robust=robust, bins=bins)


def _of_persons(asked: Hazards) -> str:
    """What to ask in place of rows from start to stop, in the question's columns."""
    start, order = asked.start, asked.start or asked.time
    entry = "" if start is None else f"{start}=min({start}), "
    return ROWS_OF_PERSONS.format(start=entry, time=asked.time, event=asked.event, order=order)


KIND = Kind(
    query=HazardRegression,
    group=QuestionGroup.TIME,
    asks="How does the risk of the event change with x, others equal?",
    plan=_plan,
    result=HazardFit | GroupHazardFits,
    examples=(
        HazardRegression("Surv(k, b) ~ x"),
        HazardRegression("Surv(k, b) ~ x + C(g)", (2.0, 5.0, 9.0), "x > 0"),
        HazardRegression("Surv(k, b) ~ x", offset="y"),
        HazardRegression("Surv(k, b) ~ x", target="likelihood"),
        HazardRegression("Surv(k, b) ~ x", target="likelihood", strata="g"),
        HazardRegression("Surv(k, b) ~ x", target="likelihood", proportionality=3),
        HazardRegression("Surv(k, b) ~ x", target="likelihood", by="g"),
    ),
    page="hazards",
)
