# SPDX-License-Identifier: Apache-2.0
"""A model query as what is fitted to a block, and the map that gives a block its records."""

from dataclasses import dataclass, replace
from math import inf
from typing import Literal

import numpy as np

from reticent_server.domain.columns import BlockModel
from reticent_server.domain.design import ColumnValue, Design, Term
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import Block, FloatArray
from reticent_server.errors import InvalidQuery
from reticent_server.formula import parse_formula
from reticent_server.kinds.glm.categories.laws import LAWS
from reticent_server.kinds.glm.families import family_of
from reticent_server.kinds.glm.plan import NO_LINK, checked_response
from reticent_server.kinds.glm.query import Glm
from reticent_server.kinds.location_scale.query import LocationScale
from reticent_server.kinds.shared.columns import mask, numeric_column
from reticent_server.kinds.shared.linear.query import LinearRegression
from reticent_server.kinds.subsample_aggregate.query import ModelQuery
from reticent_server.numerics.evaluate import evaluate_term, in_use

HUBER_TUNING = 1.345  # c: 95 % efficient at the normal law (Huber 1964)
_HUBER = "Huber's regression, no weights of the design, residual scale median|r|/0.6745, c = {c:g}"
_PROPOSAL_2 = "location and scale by Huber's Proposal 2, c = {c:g}"


Correction = Literal["firth", "jackknife", "none"]


@dataclass(frozen=True, slots=True, eq=False)
class BlockRows:
    """Gives (p + 2, rows): 1 for a record in use, its response, its row of the design."""

    design: Design
    response: Term

    def __call__(self, block: Block) -> tuple[FloatArray, ...]:
        used = in_use(self.design, block).astype(np.float64)
        ones = [np.ones(block.rows)] * int(self.design.intercept and bool(self.design.names))
        with np.errstate(all="ignore"):
            terms = [evaluate_term(term, block) for term in self.design.terms]
            return (np.vstack([used, evaluate_term(self.response, block), *ones, *terms]),)


@dataclass(frozen=True, slots=True)
class ModelInBlocks:
    """What is fitted: the model, its records, the names of its estimates, words for it, and its
    link to the mean."""

    model: BlockModel
    rows: BlockRows
    names: tuple[str, ...]
    words: str
    link: str = "identity"

    @property
    def estimand(self) -> str:
        """The target in words."""
        return (
            f"mean over blocks of records of: {self.words}; correction for bias: {self.correction}"
        )

    @property
    def correction(self) -> Correction:
        """How a block's estimate is corrected for bias."""
        if not self.model.bias_corrected:
            return "none"
        return "jackknife" if self.model.equation == "location_scale" else "firth"


def fitted_model(facts: DatasetFacts, query: ModelQuery, correction: bool) -> ModelInBlocks:
    """What a model query says is fitted. Raises InvalidQuery for what is not fitted to blocks."""
    if isinstance(query, LocationScale):
        column = numeric_column(facts, query.column)
        return location_scale(mask(facts, query.where, column.name), column, query, correction)
    return regression(
        parse_formula(query.formula, facts.schema, query.where, profile=facts.profile),
        query,
        correction,
    )


def _tuning(query: ModelQuery) -> float:
    if isinstance(query.tuning, str):
        raise InvalidQuery("Blocks have no planned tuning: give a number, or leave it out.")
    return query.tuning or HUBER_TUNING


def regression(design: Design, query: LinearRegression | Glm, correction: bool) -> ModelInBlocks:
    """Raises InvalidQuery for what is not fitted to blocks."""
    _check_newton(query)
    if isinstance(query, Glm) and query.family in LAWS:
        raise InvalidQuery(f"The {query.family} family is not fitted to blocks.")
    law = family_of(query.family, query.link) if isinstance(query, Glm) else None
    if law is None and isinstance(query, Glm) and query.link is not None:
        raise InvalidQuery(NO_LINK)
    if law is None:
        response = design.response
        if response is None or not design.names:
            raise InvalidQuery("A model needs a response and at least one term.")
        c = _tuning(query)
        model = BlockModel("huber", len(design.names), c, inf, False)
        return ModelInBlocks(model, BlockRows(design, response), design.names, _HUBER.format(c=c))
    if query.tuning is not None:
        raise InvalidQuery("Blocks are fitted by maximum likelihood: leave out the model's tuning.")
    if law.blocks is None:
        raise InvalidQuery(f"The {law.name} family is not fitted to blocks.")
    response = checked_response(design, law)
    model = BlockModel(law.name, len(design.names), inf, response.upper, correction)
    return ModelInBlocks(model, BlockRows(design, response), design.names, law.blocks, law.link)


def location_scale(
    design: Design, column: Column, query: LocationScale, correction: bool
) -> ModelInBlocks:
    """Proposal 2 of one column. Raises InvalidQuery for what is not fitted to blocks."""
    _check_newton(query)
    tuning = _tuning(query)
    model = BlockModel("location_scale", 2, tuning, column.upper, correction)
    term = Term(column.name, (ColumnValue(column.name),), column.lower, column.upper)
    rows = BlockRows(replace(design, terms=(), intercept=False), term)
    words = _PROPOSAL_2.format(c=tuning)
    return ModelInBlocks(model, rows, ("location", "scale"), words)


def _check_newton(query: ModelQuery) -> None:
    """A model inside of a subsample-and-aggregate query has no mechanism of its own."""
    ridge = query.ridge if isinstance(query, LinearRegression) else None
    huber = not isinstance(query, LinearRegression) or query.loss == "huber"
    if not isinstance(query, LocationScale) and query.weights is not None:
        raise InvalidQuery("A model that is fitted to blocks has no weights.")
    if isinstance(query, Glm) and not (query.offset is None and query.exposure is None):
        raise InvalidQuery("A model that is fitted to blocks has no offset and no exposure.")
    if not (query.mechanism == "newton" and query.calibration is None and ridge is None and huber):
        raise InvalidQuery(
            "A model that is fitted to blocks has no mechanism, calibration, ridge or other loss."
        )
