# SPDX-License-Identifier: Apache-2.0
"""The farthest two units that a step can be given: a search that needs a question only.

A question is planned and runs on one table, so that each of its steps stands where releases have
brought it. There the exact integers that every unit of an adversarial pool (`pool.py`) adds are
computed, unit by unit, through the map and the mechanisms' own encoding. Tables that differ in one
unit differ by the difference of two of these, so the largest distance of two units in the noise's
metric, Σ Δ²/(2σ²) over all entries of all parts of a step, is what the step loses at most among
them. It is compared with what the step is charged. The scales σ are read off the draws of a release
(`scales.py`), and not from what the mechanism says of itself.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reticent_server.certificate.scales import drawn_scales, entries
from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.plan import Planned
from reticent_server.domain.private import Private
from reticent_server.domain.steps import (
    Block,
    ColumnStep,
    FloatArray,
    QuantileTree,
    Released,
    Step,
    SumStep,
)
from reticent_server.mechanisms import column_registry, registry


@dataclass(frozen=True, slots=True)
class SearchedStep:
    """What the search found of one step: ρ in units of its two farthest units, the pool's places of
    these, and what it is charged, with its quantile trees, whose selections are no integers and are
    searched elsewhere."""

    label: str
    loss: float
    pair: tuple[int, int]
    charged: int


def searched(planned: Planned, table: Block, pool: Sequence[Block]) -> Iterator[SearchedStep]:
    """Each step of sums of a plan, on a path of releases from one table."""
    recipe = planned.run()
    step: Step = next(recipe)
    while True:
        if isinstance(step, SumStep):
            yield farthest(step, pool)
        try:
            step = recipe.send(_released(step, table))
        except StopIteration:
            return


def _released(step: Step, table: Block) -> tuple[Released, ...]:
    """One step's parts on the whole table, through the mechanisms."""
    if isinstance(step, ColumnStep):
        columns = [Private(np.asarray(value)) for value in step.map_fn(table)]
        return tuple(map(column_registry.release, step.parts, columns))
    block = _of_step(step, table)
    sums = registry.encode_all(step.parts, step.map_fn(block), joint=step.joint)
    rows = None if step.subset is None else block.rows
    found = (
        registry.release(part, Private(total)) for part, total in zip(step.parts, sums, strict=True)
    )
    return tuple(replace(each, rows=rows) for each in found)


def _of_step(step: SumStep, table: Block) -> Block:
    """The rows that a step adds, as a block of their own."""
    if step.subset is None:
        return table
    index = step.subset.positions(0, table.rows)
    columns = {name: values[index] for name, values in table.columns.items()}
    missing = {name: mask[index] for name, mask in table.missing.items()}
    return Block(0, len(index), columns, missing)


def farthest(step: SumStep, pool: Sequence[Block]) -> SearchedStep:
    """The two units of the pool that are the farthest apart in the noise's metric."""
    points = _points(step, pool)
    squares = np.sum(points**2, axis=1)
    gaps = squares[:, None] + squares - 2 * points @ points.T
    i, j = np.unravel_index(int(np.argmax(gaps)), gaps.shape)
    loss = float(np.sum((points[i] - points[j]) ** 2)) * RHO_UNITS
    return SearchedStep(step.label, loss, (int(i), int(j)), registry.rho(step))


def _points(step: SumStep, pool: Sequence[Block]) -> FloatArray:
    """(units, entries + 1) what each unit adds, over √2 σ; a first column of zeros, for steps that
    add nothing noisy.
    """
    sums = [registry.encode_all(step.parts, step.map_fn(unit), joint=step.joint) for unit in pool]
    noisy = [k for k, part in enumerate(step.parts) if not isinstance(part, QuantileTree)]
    scales = {k: np.sqrt(2) * drawn_scales(step.parts[k], sums[0][k]) for k in noisy}
    of_each = ([(entries(step.parts[k], s[k]) / scales[k]).ravel() for k in noisy] for s in sums)
    return np.array([np.concatenate([np.zeros(1), *parts]) for parts in of_each])
