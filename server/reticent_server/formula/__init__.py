# SPDX-License-Identifier: Apache-2.0
"""The restricted model language: text to a Design, never evaluated as code."""

from reticent_server.formula.hypothesis import parse_hypothesis
from reticent_server.formula.limits import Limits
from reticent_server.formula.panel import (
    exchangeable,
    person_deviations,
    person_effects,
    with_person_means,
)
from reticent_server.formula.parse import (
    mask_design,
    parse_formula,
    parse_predicate,
    parse_variables,
)

__all__ = [
    "Limits",
    "exchangeable",
    "mask_design",
    "parse_formula",
    "parse_hypothesis",
    "parse_predicate",
    "parse_variables",
    "person_deviations",
    "person_effects",
    "with_person_means",
]
