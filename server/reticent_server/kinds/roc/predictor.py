# SPDX-License-Identifier: Apache-2.0
"""The linear predictor of a released model as the score of a ROC curve.

Its coefficients are released numbers, so that η = βᵀx of a record is a function of this record and
of public values, and the record adds 1 to one cell (outcome, bin of η) as it would with a column in
η's place: the proof of kinds.shared.group_bins holds. Edges are quantiles of η over public rows,
which a profile's marginals make; without a profile they divide what declared bounds allow.
"""

from dataclasses import dataclass, replace
from math import isfinite

import numpy as np

from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.steps import Block, FloatArray
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.public.rows import draw_public_rows
from reticent_server.formula import mask_design, parse_formula
from reticent_server.formula.labels import quote
from reticent_server.kinds.shared.columns import declared
from reticent_server.kinds.shared.group_bins import GroupBinsMap
from reticent_server.kinds.shared.predictor import PREDICTOR_NANOSECONDS, Predictor

_CONSTANT = (
    "By the declared bounds the model's predictor is the same for all records, or not finite."
)


def public_edges_of(predictor: Predictor, facts: DatasetFacts, bins: int) -> tuple[float, ...]:
    """Increasing edges of about `bins` bins of η. Raises InvalidQuery where η cannot vary."""
    low, high = predictor.limits
    if not (low < high and isfinite(low) and isfinite(high)):
        raise InvalidQuery(_CONSTANT)
    probabilities = np.arange(1, bins) / bins
    rows = draw_public_rows(replace(predictor.design, missing_columns=()), facts)
    inside = low + probabilities * (high - low)
    if rows is not None:
        inside = np.quantile(rows.X @ np.array(predictor.coefficients), probabilities)
    return tuple(float(e) for e in np.unique(inside) if low < e <= high)


@dataclass(frozen=True, slots=True)
class PredictorBinsMap(GroupBinsMap):
    """Cells of a model's predictor in place of a column's values."""

    predictor: Predictor

    def values(self, block: Block) -> FloatArray:
        return self.predictor.values(block)

    @property
    def nanoseconds(self) -> int:
        return PREDICTOR_NANOSECONDS * len(self.predictor.coefficients)


def predictor_of(
    facts: DatasetFacts, terms: str, coefficients: tuple[float, ...], outcome: str
) -> Predictor:
    """The model whose formula has these terms. Raises InvalidFormula, and InvalidQuery where the
    coefficients are not as many as the terms."""
    levels = declared(facts, outcome).kind.has_levels
    text = f"{quote(outcome)} ~ {terms}"
    design = parse_formula(text, facts.schema, None, levels=levels, profile=facts.profile)
    if len(design.names) != len(coefficients):
        raise InvalidQuery(
            f"The model has {len(design.names)} terms; give a coefficient for each, in their order."
        )
    read, missing = (
        tuple(name for name in names if name != outcome)
        for names in (design.columns, design.missing_columns)
    )
    found = replace(design, response=None, columns=read, missing_columns=missing)
    return Predictor(found, coefficients)


def masked(facts: DatasetFacts, predictor: Predictor, where: str | None, outcome: str) -> Design:
    """The records in use: those whose outcome and terms are known and for which `where` holds."""
    rest = mask_design((outcome,), facts.schema, where)
    design = predictor.design
    return replace(
        rest,
        columns=tuple(dict.fromkeys((*design.columns, *rest.columns))),
        missing_columns=tuple(dict.fromkeys((*design.missing_columns, *rest.missing_columns))),
    )
