# SPDX-License-Identifier: Apache-2.0
"""The kind `glm`."""

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Planned
from reticent_server.domain.schema import Schema
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.group_fits import GroupFits
from reticent_server.fitting.influence.whole import no_calibration
from reticent_server.fitting.results import RegressionResult
from reticent_server.fitting.special_columns import offset_design, weighted_design
from reticent_server.formula import parse_formula
from reticent_server.kinds.base import Kind, QuestionGroup
from reticent_server.kinds.glm.categories.ask import plan_level_glm
from reticent_server.kinds.glm.categories.laws import LAWS
from reticent_server.kinds.glm.categories.report import CategoryResult
from reticent_server.kinds.glm.estimated_dispersion import plan_dispersed
from reticent_server.kinds.glm.families import family_of
from reticent_server.kinds.glm.influence import plan_influence_glm
from reticent_server.kinds.glm.model import plan_glm_by, plan_model
from reticent_server.kinds.glm.plan import NO_LINK, plan_glm
from reticent_server.kinds.glm.query import GAUSSIAN, Glm
from reticent_server.kinds.glm.statistics import plan_glm_statistics
from reticent_server.kinds.shared.clusters import plan_clustered
from reticent_server.kinds.shared.columns import sufficient
from reticent_server.kinds.shared.typical import dummies, formula, numbers

NEWTON_ONLY = (
    "Weights, offset and exposure are for the newton mechanism, and not for the gaussian family."
)
WHOLE_ONLY = "by and fit_statistics are for fits without weights, offset and exposure."
GIVEN_BY_GROUP = "A dispersion is estimated for whole data sets; with by, give dispersion=."
NEWTON_WHOLE = (
    'target="likelihood" is for newton; not for the gaussian family (linear_regression with '
    'loss="squared"), nor for several levels, which are fitted by weighted likelihood.'
)
NOT_BY_GROUP = (
    'target="likelihood" is not fitted by group: ask for one model with C({by}) and its products '
    "with the terms that may differ, or for each group by where=, at a charge each; or for "
    'target="robust" with by.'
)
GIVEN_DISPERSION = (
    'With target="likelihood" give dispersion=, or leave target out: it is then estimated.'
)
CLUSTER_ONLY = (
    "cluster is for the newton mechanism, without by and fit_statistics; not for several levels, "
    "nor for the gaussian family (linear_regression has it)."
)
CLUSTER_DISPERSION = (
    "cluster needs a given dispersion=. Or ask for the poisson family: its errors by cluster hold "
    "whatever the counts' variance is."
)
COUNTS_ONLY = "Offset and exposure are for the families of counts: poisson and negative_binomial."


def _has_special(query: Glm) -> bool:
    """Whether a question names columns that are no terms; raises InvalidQuery where these make no
    sense.
    """
    if all(name is None for name in (query.weights, query.offset, query.exposure)):
        return False
    law = family_of(query.family, query.link)
    if query.mechanism != "newton" or query.family == GAUSSIAN:
        raise InvalidQuery(NEWTON_ONLY)
    if not (query.offset is None and query.exposure is None) and law is not None and not law.rates:
        raise InvalidQuery(COUNTS_ONLY)
    return True


def _check_target(query: Glm) -> None:
    """Raises InvalidQuery where maximum likelihood is asked for and not answered."""
    if query.target == "robust":
        return
    other = query.family == GAUSSIAN or query.family in LAWS
    if other or query.mechanism != "newton":
        raise InvalidQuery(NEWTON_WHOLE)
    if query.by is not None:
        raise InvalidQuery(NOT_BY_GROUP.format(by=query.by))
    if _estimates_dispersion(query):
        raise InvalidQuery(GIVEN_DISPERSION)


def _estimates_dispersion(query: Glm) -> bool:
    """Whether a family with a dispersion is asked for without one."""
    law = family_of(query.family, query.link)
    return law is not None and law.dispersed and query.dispersion is None


def _plan(facts: DatasetFacts, query: Glm, offer: PrivacyCost) -> Planned:
    _check_target(query)
    if query.cluster is not None or query.strata is not None:
        return _plan_clustered(facts, query, offer.rho)
    return _plan_rows(facts, query, offer)


def _plan_rows(facts: DatasetFacts, query: Glm, offer: PrivacyCost) -> Planned:
    if query.family in LAWS:
        return plan_level_glm(facts, query, offer.rho)
    special = _has_special(query)
    if special and (query.fit_statistics or query.by is not None):
        raise InvalidQuery(WHOLE_ONLY)
    if query.fit_statistics:
        return plan_glm_statistics(facts, query, offer.rho)
    if query.by is not None:
        if _estimates_dispersion(query):
            raise InvalidQuery(GIVEN_BY_GROUP)
        return plan_glm_by(facts, query, query.by, offer.rho)
    if query.mechanism == "influence":
        design = parse_formula(query.formula, facts.schema, query.where, profile=facts.profile)
        return plan_influence_glm(facts, design, query, sufficient(offer))
    no_calibration(query.calibration)
    estimated = _estimates_dispersion(query)
    if query.link is not None or query.target == "likelihood" or special or estimated:
        if query.family == GAUSSIAN:
            raise InvalidQuery(NO_LINK)
        design = parse_formula(query.formula, facts.schema, query.where, profile=facts.profile)
        design = weighted_design(design, facts.schema, query.weights)
        design = offset_design(design, facts.schema, query.offset, query.exposure)
        plan = plan_dispersed if estimated else plan_glm
        return plan(facts, design, query, offer.rho)
    return plan_model(facts, query, offer.rho)


def _plan_clustered(facts: DatasetFacts, query: Glm, rho: int) -> Planned:
    other = query.mechanism != "newton" or query.family == GAUSSIAN or query.family in LAWS
    if other or query.fit_statistics or query.by is not None:
        raise InvalidQuery(CLUSTER_ONLY)
    if _estimates_dispersion(query):
        raise InvalidQuery(CLUSTER_DISPERSION)
    no_calibration(query.calibration)
    _has_special(query)
    design = parse_formula(query.formula, facts.schema, query.where, profile=facts.profile)
    design = weighted_design(design, facts.schema, query.weights)
    design = offset_design(design, facts.schema, query.offset, query.exposure)
    return plan_clustered(
        facts,
        design,
        query.cluster,
        query.strata,
        rho,
        lambda read, left: plan_glm(facts, read, query, left),
    )


def _typical(schema: Schema) -> list[Glm]:
    """A logistic regression of the first yes or no."""
    yes, names = dummies(schema)[:1], numbers(schema)
    return [Glm(formula(yes[0], names), "binomial")] if yes and names else []


KIND = Kind(
    query=Glm,
    group=QuestionGroup.MODEL,
    asks="How does a yes or no, a count or a positive amount change with x, others equal?",
    plan=_plan,
    result=RegressionResult | CategoryResult | GroupFits,
    examples=(
        Glm("b ~ x", "binomial"),
        Glm("b ~ x", "binomial", mechanism="influence"),
        Glm("b ~ x", "binomial", link="probit"),
        Glm("b ~ x", "binomial", link="log"),
        Glm("b ~ x", "binomial", weights="k"),
        Glm("k ~ b", "poisson", offset="x"),
        Glm("b ~ x", "binomial", target="likelihood"),
        Glm("k ~ x", "poisson", where="x > 0", target="likelihood"),
        Glm("b ~ x", "binomial", by="g"),
        Glm("b ~ x", "binomial", fit_statistics=True),
        Glm("b ~ x", "binomial", cluster="k"),
        Glm("k ~ x", "poisson", target="likelihood", cluster="k"),
        Glm("y ~ x", "gaussian"),
        Glm("k ~ x", "poisson"),
        Glm("k ~ x", "negative_binomial", dispersion=0.5),
        Glm("k ~ x", "negative_binomial"),
        Glm("exp(x) ~ b", "gamma"),
        Glm("g ~ x", "multinomial"),
        Glm("g ~ x", "ordinal"),
    ),
    page="glm",
    title="Generalised linear model",
    typical=_typical,
)
