# SPDX-License-Identifier: Apache-2.0
"""The result of a subsample-and-aggregate query, from released values alone."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np
from annotated_types import Ge

from reticent_server.domain.steps import FloatArray
from reticent_server.fitting import trust
from reticent_server.fitting.public.standardise import NORMAL_IQR
from reticent_server.fitting.report import intervals, p_values
from reticent_server.fitting.results import Interval, OpenInterval, Share
from reticent_server.kinds.subsample_aggregate.model import Correction
from reticent_server.mechanisms.subsample_aggregate import window

if TYPE_CHECKING:
    from reticent_server.kinds.subsample_aggregate.plan import SubsampleAggregatePlan

_REACH = 2.0  # quartile ranges on either side of the mean's window

TOO_FEW = (
    "There are too few blocks for the quartiles at this epsilon: estimates may be far off. Ask "
    "for a "
    "larger epsilon, fewer terms or more blocks."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockEstimates:
    """m estimates: vectors (m,). Covariances between them are not released. null: not identifiable.

    block_quartiles: of the blocks' estimates. parameter_bounds: public, of each. tuning: null for
    no cut.
    """

    terms: list[str]
    coefficients: list[float]
    standard_errors: list[float]
    confidence_level: Share
    confidence_intervals: list[OpenInterval]
    p_values: list[Share | None]
    privacy_standard_errors: list[float]
    estimable: list[bool]
    block_quartiles: list[Interval]
    parameter_bounds: list[Interval]
    blocks: Annotated[int, Ge(2)]
    rows_per_block: Annotated[int, Ge(1)]
    bias_correction: Correction
    tuning: float | None
    estimand: str
    n: int
    warnings: list[str]


def report(plan: "SubsampleAggregatePlan", means: FloatArray) -> BlockEstimates:
    """found (m, 4): means, standard deviations of their noise, quartiles over blocks.

    An estimate is not identifiable where a quartile lies at one of its public bounds, or where the
    noise cannot have been less than the spread of the blocks' estimates.
    """
    part, fitted = plan.part, plan.fitted
    value, noise, first, third = means.T
    half = [window(m, a, b)[1] for m, a, b in zip(part.means, first, third, strict=True)]
    block_sd = np.asarray(half) / _REACH / NORMAL_IQR
    errors = np.hypot(block_sd / np.sqrt(part.blocks), noise)
    low, high = np.array(plan.bounds).T
    estimable = (first > low) & (third < high) & trust.blocks_tell(noise, block_sd)
    kept = estimable.copy()
    if part.model.equation == "location_scale":
        kept[1] = False
    return BlockEstimates(
        terms=list(fitted.names),
        coefficients=value.tolist(),
        standard_errors=errors.tolist(),
        confidence_level=plan.confidence_level,
        confidence_intervals=intervals(value, errors, plan.confidence_level, estimable),
        p_values=p_values(value, errors, kept),
        privacy_standard_errors=noise.tolist(),
        estimable=[bool(ok) for ok in estimable],
        block_quartiles=np.column_stack([first, third]).tolist(),
        parameter_bounds=list(plan.bounds),
        blocks=part.blocks,
        rows_per_block=plan.n // part.blocks,
        bias_correction=fitted.correction,
        tuning=part.model.tuning if np.isfinite(part.model.tuning) else None,
        estimand=fitted.estimand,
        n=plan.n,
        warnings=_warnings(plan, estimable),
    )


def _warnings(plan: "SubsampleAggregatePlan", estimable: FloatArray) -> list[str]:
    names = [t for t, ok in zip(plan.fitted.names, estimable, strict=True) if not ok]
    said = [] if plan.trusted else [TOO_FEW]
    if not names:
        return said
    words = (
        "Not identifiable at this epsilon, or outside of its bounds, or without a fit in most "
        "blocks: "
    )
    return [words + ", ".join(names) + ".", *said]
