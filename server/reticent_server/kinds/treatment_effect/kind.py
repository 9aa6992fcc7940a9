# SPDX-License-Identifier: Apache-2.0
"""The kind `treatment_effect`."""

from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge, Le, MaxLen, MinLen
from pydantic import AllowInfNan, Field, Strict

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.design import Design, Term
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.query import Query
from reticent_server.domain.schema import Column
from reticent_server.errors import InvalidQuery
from reticent_server.fitting import trust
from reticent_server.fitting.coding import code_terms
from reticent_server.fitting.heavy_terms import skewness_of
from reticent_server.fitting.public.rows import PublicRows, draw_public_rows
from reticent_server.formula import mask_design, parse_formula
from reticent_server.formula.labels import quote
from reticent_server.kinds.base import Kind, QuestionGroup
from reticent_server.kinds.binned_residuals.links import MEANS
from reticent_server.kinds.fields import Level, Name, Number, Text, Where
from reticent_server.kinds.glm.plan import plan_glm
from reticent_server.kinds.glm.query import Glm
from reticent_server.kinds.shared.columns import declared, second_of_two
from reticent_server.kinds.shared.linear.plan import plan_linear_regression
from reticent_server.kinds.shared.linear.query import LinearRegression
from reticent_server.kinds.treatment_effect.estimate import TreatmentEffectResult
from reticent_server.kinds.treatment_effect.nuisance import FittedFirst, NuisanceSource, given
from reticent_server.kinds.treatment_effect.plan import TreatmentEffectPlan, shares_of
from reticent_server.kinds.treatment_effect.records import AdjustedRecords
from reticent_server.kinds.treatment_effect.targets import TARGETS

MAX_TERMS = 64  # as many columns as a design may have
_PROPENSITY, _OUTCOME = 0.3, 0.25  # of ρ, of a model that is fitted within the question

Coefficients = Annotated[tuple[Number, ...], MinLen(2), MaxLen(MAX_TERMS)]
Rows = Annotated[tuple[Annotated[tuple[Number, ...], MaxLen(MAX_TERMS)], ...], MaxLen(MAX_TERMS)]

_NOT_DUMMY = (
    "`treatment` is a boolean column, an integer column with bounds 0 and 1, or one of two levels."
)
_PERSONS = (
    "This is for tables with one row a person: ask about features of persons, such as mean(x) or "
    "last(x, by=year), which have one."
)
_ITSELF = "The response and the covariates are other columns than the treatment."
_NO_WEIGHTS = 'gcomp has no weights: leave `propensity` out, and ask for "ate", "att" or "atc".'
_NO_MODEL = "ipw has no model of the response: leave `outcome` out, or ask for aipw."
_UNBOUNDED = "The response has no bounds: declare bounds of its columns that make it finite."
_TERMS = (
    "The {which} has {given} coefficients and needs {wanted}: one for each of {names}, in this "
    "order."
)
_ALONE = "{noise} is the covariance of {model}: give both."


@dataclass(frozen=True, slots=True)
class TreatmentEffect(Query):
    """What does a treatment change, others equal? The average effect by propensity weights, doubly
    robust (AIPW), or by g-computation; with overlap and balance.
    """

    y: Annotated[Text, Field(description="The response, a column or a function of one.")]
    treatment: Annotated[Name, Field(description="A 0/1 column, or one of two levels.")]
    covariates: Annotated[
        Text, Field(description="What both models adjust for, such as `age + C(g) + x1:x2`.")
    ]
    estimand: Annotated[
        Literal["ate", "att", "atc", "overlap"],
        Field(
            description="Whose effect: of all, of the treated, of the controls, or of those who "
            "might be either (overlap weights, for poor overlap)."
        ),
    ] = "ate"
    estimator: Annotated[
        Literal["aipw", "ipw", "gcomp"],
        Field(
            description="aipw: weights and a model of the response, right where either is (doubly "
            "robust); ipw: weights alone; gcomp: the model alone."
        ),
    ] = "aipw"
    where: Where = None
    propensity: Annotated[
        Coefficients | None,
        Field(
            description="Of a released logit of the treatment on the covariates, the intercept "
            "first; null: fitted first, for 30 % of the budget."
        ),
    ] = None
    propensity_noise: Annotated[
        Rows | None, Field(description="The covariance of their privacy noise; null: none.")
    ] = None
    outcome: Annotated[
        Coefficients | None,
        Field(
            description="Of a released regression of y on the treatment and the covariates, in "
            "this order after the intercept; null: least squares, fitted first for 25 % of the "
            "budget."
        ),
    ] = None
    outcome_covariance: Annotated[
        Rows | None, Field(description="Their covariance, of sampling and noise; null: none.")
    ] = None
    outcome_link: Annotated[
        Literal["identity", "logit", "log"], Field(description="Of the released regression.")
    ] = "identity"
    trim: Annotated[
        Annotated[float, Strict(), Ge(0.001), Le(0.25), AllowInfNan(False)],
        Field(description="Propensities are cut to [trim, 1 − trim], so weights to 1/trim."),
    ] = 0.05
    confidence_level: Level = 0.95
    kind: Literal["treatment_effect"] = field(default="treatment_effect", kw_only=True)


def _plan(facts: DatasetFacts, query: TreatmentEffect, offer: PrivacyCost) -> TreatmentEffectPlan:
    _check(query)
    treated = _treatment(declared(facts, query.treatment))
    design = _design(facts, query)
    weighted = query.estimator != "gcomp"
    modelled = query.estimator != "ipw"
    fitted = (weighted and query.propensity is None) or (modelled and query.outcome is None)
    if fitted and facts.schema.unit.several_rows:
        raise InvalidQuery(_PERSONS)
    rho = offer.rho
    propensity = _propensity(facts, query, design, treated, rho) if weighted else None
    outcome = _outcome(facts, query, design, treated, rho) if modelled else None
    fits = [plan for each in (propensity, outcome) if each is not None for plan in each.plans]
    rows = draw_public_rows(design, facts)
    locations = None if rows is None or not weighted else _locations(design, rows)
    left = rho - sum(plan.rho for plan in fits)
    centre, spread, known = _spread(design, rows)
    link, target = query.outcome_link, TARGETS[query.estimand]
    records = AdjustedRecords(design, treated, target, query.trim, None, None, link, centre, spread)
    return TreatmentEffectPlan(
        records=records,
        propensity=propensity,
        outcome=outcome,
        shares=shares_of(left, weighted=weighted, balanced=locations is not None),
        locations=locations,
        known=known,
        skewed=rows is not None and bool(trust.skewed(skewness_of(rows.y[None]))[0]),
        estimator=query.estimator,
        estimand=query.estimand,
        level=query.confidence_level,
        names=tuple(term.name for term in design.terms),
        unit_rows=facts.schema.unit.max_rows,
        n=facts.n,
    )


def _check(query: TreatmentEffect) -> None:
    """Raises InvalidQuery for fields that do not go together."""
    if query.estimator == "gcomp" and (query.propensity is not None or query.estimand == "overlap"):
        raise InvalidQuery(_NO_WEIGHTS)
    if query.estimator == "ipw" and query.outcome is not None:
        raise InvalidQuery(_NO_MODEL)
    if query.propensity is None and query.propensity_noise is not None:
        raise InvalidQuery(_ALONE.format(noise="propensity_noise", model="propensity"))
    if query.outcome is None and query.outcome_covariance is not None:
        raise InvalidQuery(_ALONE.format(noise="outcome_covariance", model="outcome"))


def _treatment(column: Column) -> Term:
    """The 0/1 treatment. Raises InvalidQuery."""
    value = second_of_two(column, _NOT_DUMMY)
    return Term(quote(column.name), (value,), 0.0, 1.0, dummy=True)


def _design(facts: DatasetFacts, query: TreatmentEffect) -> Design:
    """y ~ covariates, on records whose treatment is known. Raises InvalidQuery, InvalidFormula."""
    text = f"{query.y} ~ {query.covariates}"
    design = parse_formula(text, facts.schema, None, profile=facts.profile)
    if query.treatment in design.columns:
        raise InvalidQuery(_ITSELF)
    response = design.response
    if response is None or not design.terms or not design.intercept:
        raise InvalidQuery("Give a response and covariates, with an intercept.")
    if len(design.terms) > MAX_TERMS - 2:
        raise InvalidQuery(f"At most {MAX_TERMS - 2} columns of covariates can be adjusted for.")
    if not np.isfinite([response.lower, response.upper]).all():
        raise InvalidQuery(_UNBOUNDED)
    mask = mask_design((query.treatment,), facts.schema, query.where)
    return replace(
        design,
        where=mask.where,
        columns=tuple(dict.fromkeys((*design.columns, *mask.columns))),
        missing_columns=tuple(dict.fromkeys((*design.missing_columns, *mask.missing_columns))),
    )


def _propensity(
    facts: DatasetFacts, query: TreatmentEffect, design: Design, treated: Term, rho: int
) -> NuisanceSource:
    names = ("Intercept", *(term.name for term in design.terms))
    if query.propensity is not None:
        _match("propensity", len(query.propensity), names)
        return given(query.propensity, query.propensity_noise)
    asked = Glm("y ~ x", "binomial", target="likelihood")  # the design is given
    model = replace(design, response=treated)
    return FittedFirst(plan_glm(facts, model, asked, int(_PROPENSITY * rho)), noise_only=True)


def _outcome(
    facts: DatasetFacts, query: TreatmentEffect, design: Design, treated: Term, rho: int
) -> NuisanceSource:
    names = ("Intercept", treated.name, *(term.name for term in design.terms))
    if query.outcome is not None:
        _match("outcome", len(query.outcome), names)
        if design.response is not None:
            MEANS[query.outcome_link].check(design.response)
        return given(query.outcome, query.outcome_covariance)
    asked = LinearRegression("y ~ x", loss="squared")  # the design is given
    model = replace(design, terms=(treated, *design.terms))
    share = _OUTCOME if query.estimator == "aipw" else 2 * _OUTCOME
    plan = plan_linear_regression(facts, model, asked, int(share * rho))
    return FittedFirst(plan, noise_only=False)


def _match(which: str, given_: int, names: tuple[str, ...]) -> None:
    if given_ != len(names):
        raise InvalidQuery(
            _TERMS.format(which=which, given=given_, wanted=len(names), names=", ".join(names))
        )


def _locations(design: Design, rows: PublicRows) -> tuple[tuple[float, float], ...]:
    """Centres and scales of the covariates (k, 2), by public rows."""
    return tuple((each.centre, each.scale) for each in code_terms(design, rows).locations)


def _spread(design: Design, rows: PublicRows | None) -> tuple[float, float, bool]:
    """Centre and spread of the response, and whether a profile tells them."""
    response = design.response
    if response is None:
        raise RuntimeError("an effect has a response")
    width = response.upper - response.lower
    if rows is not None and float(rows.y.std()) > 0:
        return float(rows.y.mean()), float(rows.y.std()), True
    return (response.lower + response.upper) / 2, (width or 1.0) / 12**0.5, False


KIND = Kind(
    query=TreatmentEffect,
    group=QuestionGroup.POLICY,
    asks="What does a treatment change, between people who are alike in other things?",
    plan=_plan,
    result=TreatmentEffectResult,
    examples=(
        TreatmentEffect("y", "b", "x", propensity=(0.1, 0.2), outcome=(1.0, 0.5, 2.0)),
        TreatmentEffect("y", "b", "x + C(g)", "overlap", "ipw", "k > 1"),
        TreatmentEffect("y", "b", "x", "att", "gcomp", outcome=(1.0, 0.5, 2.0)),
    ),
    page="treatment-effects",
    title="Treatment effect",
)
