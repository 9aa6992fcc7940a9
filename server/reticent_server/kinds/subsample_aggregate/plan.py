# SPDX-License-Identifier: Apache-2.0
"""A planned subsample-and-aggregate query: from public facts to one step, and to the result.

1. k blocks: as many as leave 40 records for each estimate of the model in a block, or, where the
   privacy noise needs more blocks, 8; or as the analyst asks.
2. Each of the m estimates gets ρ/m: .4 of it for its quartiles over blocks, .6 for its mean.
3. The quartiles also give the sampling error of the mean, (q₃ − q₁)/(1.349√k), at no further cost.

Privacy: mechanisms.subsample_aggregate. Source: Smith (2011).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, log, sqrt
from typing import Any, ClassVar

import numpy as np

from reticent_server.domain.columns import BlockMean, SubsampleAggregate
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.grid import Grid
from reticent_server.domain.plan import Outline, Planned, Recipe
from reticent_server.domain.precision import ForecastPrecision, from_ratios
from reticent_server.domain.steps import SELECTION_NANOSECONDS, ColumnStep
from reticent_server.errors import InvalidQuery
from reticent_server.fitting import trust
from reticent_server.fitting.public.standardise import NORMAL_IQR
from reticent_server.fitting.trust.thresholds import RANK_ERROR, RANK_ODDS
from reticent_server.kinds.shared.answers import IN_BLOCKS
from reticent_server.kinds.subsample_aggregate.bounds import (
    Bounds,
    checked_bounds,
    planned_bounds,
)
from reticent_server.kinds.subsample_aggregate.model import ModelInBlocks
from reticent_server.kinds.subsample_aggregate.query import SubsampleAggregateQuery
from reticent_server.kinds.subsample_aggregate.report import TOO_FEW, report
from reticent_server.mechanisms import noisy_sum, quantile_tree, subsample_aggregate
from reticent_server.numerics.block_fits import AGAIN, GROUPS, STEPS

# records of a block for each estimate: of a good normal approximation, of a usable one, and the
# fewest allowed
RICH, POOR, LEAST = 40, 8, 2
# blocks: estimates of all of them are held at once, and noise is long below the sampling error
LARGEST = 1 << 16
# share of an estimate's ρ: less and the window is misplaced, more and the mean is noisier
_QUARTILES = 0.4
# planned, of a record and coefficient in a step, and of a block: a deadline only
_NANOSECONDS, _PER_BLOCK = 40, 20_000
_CANDIDATES = 4096  # of as many parts of a grid, one at least holds estimates near the quartile


@dataclass(frozen=True, slots=True)
class SubsampleAggregatePlan(Planned):
    """A planned query. bounds: of each estimate, public."""

    deadline_shares: ClassVar = (0.07, 0.08)

    fitted: ModelInBlocks
    part: SubsampleAggregate
    bounds: tuple[Bounds, ...]
    confidence_level: float
    n: int

    @property
    def outline(self) -> Outline:
        return Outline(
            answers=IN_BLOCKS,
            columns=self.fitted.rows.design.columns,
            rho=subsample_aggregate.cost(self.part).rho,
            mechanism=(
                "subsample and aggregate over secret random blocks: private quartiles, "
                "winsorised noisy mean"
            ),
            reference="Smith (2011); Dwork & Smith (2009), Algorithm 1",
            column_ms=self._column_ms,
            steady=False,
        )

    @property
    def _column_ms(self) -> int:
        """Planned time of the fits and of the selections."""
        model = self.part.model
        steps = STEPS[model.equation]
        if model.bias_corrected:
            steps += GROUPS * AGAIN if model.equation == "location_scale" else steps
        a_step = self.n * (model.size + 4) * _NANOSECONDS + self.part.blocks * _PER_BLOCK
        trees = (subsample_aggregate.quartile_tree(self.part, m) for m in self.part.means)
        selected = 2 * sum(tree.sub_cells for tree in trees) * SELECTION_NANOSECONDS
        return ceil((steps * a_step + selected) / 10**6)

    @property
    def trusted(self) -> bool:
        """Whether quartiles are within a fifth of the blocks of theirs, but for a chance of 1 %
        each.
        """
        return all(self.part.blocks >= needed_blocks(self.part, mean) for mean in self.part.means)

    @property
    def precision(self) -> ForecastPrecision:
        """Forecast precision of the estimates, at a normal law of the blocks' ones; none where the
        noise is expected to hide their spread.
        """
        ratio = float(self.forecast["noise_ratio"])
        told = bool(trust.blocks_tell(np.asarray(ratio), np.sqrt(self.part.blocks)))
        return from_ratios(("estimates",), (ratio if told else None,))

    @property
    def forecast(self) -> Mapping[str, Any]:
        """Blocks, and the privacy noise of a mean over its sampling error at normal estimates."""
        half = 2 * NORMAL_IQR
        noise = noisy_sum.noise_sd(subsample_aggregate.mean_sum(self.part, self.part.means[0]))
        return {
            "blocks": self.part.blocks,
            "rows_per_block": self.n // self.part.blocks,
            "noise_ratio": half * noise / sqrt(self.part.blocks),
            "notes": [] if self.trusted else [TOO_FEW],
        }

    def run(self) -> Recipe:
        """One step; always a reply."""
        (released,) = yield ColumnStep("subsample and aggregate", (self.part,), self.fitted.rows)
        return report(self, released.values.reshape(-1, 4))


def plan_subsample_aggregate(
    facts: DatasetFacts, fitted: ModelInBlocks, query: SubsampleAggregateQuery, rho: int
) -> SubsampleAggregatePlan:
    """Plans at `rho` (RHO_UNITS). Raises InvalidQuery for bounds or blocks that do not fit."""
    m = fitted.model.size
    given = query.parameter_bounds
    bounds = checked_bounds(given, fitted.names) if given else planned_bounds(facts, fitted)
    quartiles = max(int(_QUARTILES * (rho // m)), 1)
    means = tuple(
        BlockMean(Grid(a, b), (a + b) / 2, quartiles, max(rho // m - quartiles, 1))
        for a, b in bounds
    )
    part = SubsampleAggregate(fitted.model, 2, means, facts.schema.unit.max_rows)
    blocks = _blocks(facts.n, part) if query.blocks is None else query.blocks
    if not 2 <= blocks <= min(facts.n // (LEAST * m), LARGEST):
        raise InvalidQuery(
            f"blocks lies between 2 and n/{LEAST * m} (and {LARGEST}), so that a block has "
            f"{LEAST} records for each estimate of the model."
        )
    part = SubsampleAggregate(fitted.model, blocks, means, facts.schema.unit.max_rows)
    return SubsampleAggregatePlan(fitted, part, bounds, query.confidence_level, facts.n)


def needed_blocks(part: SubsampleAggregate, mean: BlockMean) -> int:
    """Blocks at which a quartile's error in ranks is below a fifth of them, but for a chance of 1
    %.

    The error exceeds t ranks with probability c·exp(−t/b), b the scale of the selection and 1/c the
    share of the grid near the quartile.
    """
    b = quantile_tree.scale(subsample_aggregate.quartile_tree(part, mean))
    return ceil(b * log(RANK_ODDS.value * _CANDIDATES) / RANK_ERROR.value)


def _blocks(n: int, part: SubsampleAggregate) -> int:
    m = part.model.size
    wanted = max(needed_blocks(part, mean) for mean in part.means)
    return max(2, min(max(n // (RICH * m), min(wanted, n // (POOR * m))), LARGEST))
