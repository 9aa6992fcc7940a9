# SPDX-License-Identifier: Apache-2.0
"""What quantiles, a range of quartiles and a median select from: the public grid of numerics.grids.

All select by mechanisms.quantile_tree, over the records in use: one recursion for all probabilities, so that the
values never decrease.
"""

from dataclasses import dataclass
from math import sqrt

from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.precision import ForecastPrecision
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import Block, FloatArray, QuantileTree
from reticent_server.errors import InvalidPrivacy
from reticent_server.mechanisms import quantile_tree
from reticent_server.numerics.evaluate import in_use
from reticent_server.numerics.grids import candidate_grid, cell_codes, repeats


@dataclass(frozen=True, slots=True)
class CodeMap:
    """(rows,) cell of a record in use on the column's public grid."""

    design: Design
    column: Column

    def __call__(self, block: Block) -> tuple[FloatArray, ...]:
        used = in_use(self.design, block) if self.design.masked else None
        values = block.columns[self.column.name]
        return (cell_codes(values, candidate_grid(self.column), used),)


def quantile_part(
    facts: DatasetFacts, column: Column, probabilities: tuple[float, ...], rho: int
) -> QuantileTree:
    """Quantiles at increasing probabilities. Raises InvalidPrivacy where `rho` selects nothing."""
    grid = candidate_grid(column)
    part = QuantileTree(grid, probabilities, rho, facts.schema.unit.max_rows, repeats(grid))
    if not quantile_tree.ladder(part).steps:
        raise InvalidPrivacy("epsilon is too small to select a value; raise it.")
    return part


def rank_precision(part: QuantileTree, n: int) -> ForecastPrecision:
    """Of the share of n records that lies below each released value: a selection's noise falls by e over b ranks on both
    sides, so its standard deviation is √2 b, as of Laplace's law."""
    noise = sqrt(2) * quantile_tree.scale(part) / n
    sampling = tuple(sqrt(p * (1 - p) / n) for p in part.probabilities)
    names = tuple(f"{100 * p:g}%" for p in part.probabilities)
    return ForecastPrecision(names, (noise,) * len(names), sampling, in_units=False)
