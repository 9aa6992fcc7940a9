# SPDX-License-Identifier: Apache-2.0
"""A question of `glm` about a response with several levels."""

from reticent_server.domain.facts import DatasetFacts
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.special_columns import weighted_design
from reticent_server.kinds.glm.categories.plan import CategoryPlan, plan_categories
from reticent_server.kinds.glm.categories.response import level_design
from reticent_server.kinds.glm.query import Glm

ONLY = (
    "The multinomial and ordinal families have the logit link by the newton mechanism, without "
    "tuning, dispersion, offset, "
    "exposure, calibration, by and fit_statistics: leave these out."
)


def plan_level_glm(facts: DatasetFacts, query: Glm, rho: int) -> CategoryPlan:
    """Plans at `rho` (RHO_UNITS) from public facts alone. Raises InvalidFormula or InvalidQuery."""
    absent = (
        query.tuning,
        query.dispersion,
        query.offset,
        query.exposure,
        query.calibration,
        query.by,
    )
    named = any(field is not None for field in absent) or query.fit_statistics
    if named or query.mechanism != "newton" or query.link not in {None, "logit"}:
        raise InvalidQuery(ONLY)
    design, axis = level_design(facts, query.formula, query.where)
    design = weighted_design(design, facts.schema, query.weights)
    return plan_categories(facts, design, axis, query.family, query.confidence_level, rho)
