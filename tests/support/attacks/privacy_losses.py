# SPDX-License-Identifier: Apache-2.0
"""The privacy loss of a pair of neighbouring tables, from their integer sums and the noise drawn.

Used against everything that is released by noisy sums: half the noise, a wrong sensitivity, a
missing clip or a contribution that depends on other records all raise it above what is charged.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from reticent_server.certificate.scales import drawn_scales, entries
from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.steps import (
    Block,
    Contribution,
    FloatArray,
    Part,
    QuantileTree,
    RunningCounts,
    SumStep,
)
from reticent_server.mechanisms import noisy_sum, quantile_tree, registry, running_counts
from reticent_server.mechanisms._sampler import IntArray
from support.fits.regressions import totals, whole


def loss(part: Part, table: Contribution, neighbour: Contribution) -> float:
    """ρ of this pair of tables, in units: Σ Δ²/(2σ²) over the entries that are released."""
    return loss_of_sums(part, registry.encode(part, table), registry.encode(part, neighbour))


def loss_of_sums(part: Part, sums: IntArray, others: IntArray) -> float:
    """ρ of two tables, in units, from the integer sums of the one and of the other."""
    difference = entries(part, sums - others).astype(float)
    rho = float((difference**2 / (2 * drawn_scales(part, sums) ** 2)).sum())
    return rho * float(RHO_UNITS)


def sensitivity(part: Part) -> float:
    """Δ of the integers that the noise is added to."""
    if isinstance(part, RunningCounts):
        return running_counts.sensitivity(part)
    assert not isinstance(part, QuantileTree)
    return noisy_sum.sensitivity(part)


def step_loss(step: SumStep, block: Block, neighbour: Block) -> float:
    """ρ in units that one step loses on two neighbouring blocks (a QuantileTree at what it
    bills).
    """
    losses = 0.0
    sums, others = (
        registry.encode_all(step.parts, step.map_fn(each), joint=step.joint)
        for each in (block, neighbour)
    )
    for part, table, other in zip(step.parts, sums, others, strict=True):
        if isinstance(part, QuantileTree):
            losses += quantile_tree.billed_rho(part) * RHO_UNITS
        else:
            losses += loss_of_sums(part, table, other)
    return losses


def farthest_records(
    step: SumStep, records: Mapping[str, FloatArray]
) -> Iterator[tuple[type[Part], float]]:
    """(kind of part, largest distance of two of the records over the sensitivity) for each noisy
    sum.

    Sums of tables that differ in one record differ by the difference of two contributions.
    """
    count = len(next(iter(records.values())))
    m = max(part.person_rows for part in step.parts)  # then a person whose rows are all the same
    rows = [whole({k: np.repeat(v[i], m) for k, v in records.items()}) for i in range(count)]
    sums = [totals(step, row) for row in rows]
    for position, part in enumerate(step.parts):
        whole_unit = part.unit_rows if m > 1 else 1
        points = np.array([entries(part, s[position]).ravel() for s in sums], dtype=np.float64)
        squares = np.sum(points**2, axis=1)
        gaps = squares[:, None] + squares - 2 * points @ points.T
        yield (
            type(part),
            float(np.sqrt(max(gaps.max(), 0.0))) * part.unit_rows / whole_unit / sensitivity(part),
        )
