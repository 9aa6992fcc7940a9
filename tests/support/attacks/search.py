# SPDX-License-Identifier: Apache-2.0
"""The farthest two units that a step can be given: a search that needs a question only.

A question is planned and runs on one table, so that each of its steps stands where releases have
brought it. There the exact integers that every unit of an adversarial pool adds are computed, unit
by unit, through the map and the mechanisms' own encoding. Tables that differ in one unit differ by
the difference of two of these, so the largest distance of two units in the noise's metric, Σ
Δ²/(2σ²) over all entries of all parts of a step, is what the step loses at most among them. It is
compared with what the step is charged.

The pool has the ends of every column's bounds, its middle, values that no cell may have, and
missing cells; a unit of several rows has copies of one record, records of several kinds, and places
without a row.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Planned
from reticent_server.domain.schema import ABSENT, Column, ColumnKind, Unit
from reticent_server.domain.steps import Block, FloatArray, QuantileTree, Step, SumStep
from reticent_server.mechanisms import registry
from support.attacks.privacy_losses import drawn_scales, entries
from support.fits.regressions import drive_step
from support.kinds.recipes import released

FAR = (
    1e300,
    np.nan,
)  # no cell holds these; maps and primitives have to withstand them all the same


@dataclass(frozen=True)
class Found:
    """Of one step: ρ in units of its two farthest units, the pool's places of these, and what it is
    charged, with its quantile trees, whose selections are no integers and are searched
    elsewhere.
    """

    label: str
    loss: float
    pair: tuple[int, int]
    charged: int


def units(facts: DatasetFacts, size: int, seed: int) -> list[Block]:
    """A pool of `size` units, as blocks of their own."""
    rng, m = np.random.default_rng(seed), facts.schema.unit.max_rows
    columns = facts.schema.columns
    corners = list(product(*(_values(column, rng) for column in columns)))
    rows = [corners[k] for k in rng.permutation(len(corners))[: size * m]]
    unit = facts.schema.unit
    return [_unit(columns, rows, unit, k, rng) for k in range(size)]


def _values(column: Column, rng: np.random.Generator) -> Sequence[float]:
    ends = (column.lower, column.upper)
    if column.kind is ColumnKind.NUMERIC:
        middle = sum(ends) / 2  # a cut, or a centre, is often there
        return (*ends, middle, column.lower + rng.random() * (column.upper - column.lower))
    return ends if column.is_dummy else (*ends, float(round(sum(ends) / 2)))


def _unit(
    columns: Sequence[Column],
    rows: Sequence[tuple[float, ...]],
    unit: Unit,
    number: int,
    rng: np.random.Generator,
) -> Block:
    """m copies of one record; of every third unit different ones, of which none to all are absent,
    or the only one.
    """
    m = unit.max_rows
    mixed = m > 1 and number % 3 == 2
    taken = [rows[(number * m + (j if mixed else 0)) % len(rows)] for j in range(m)]
    values = dict(
        zip((c.name for c in columns), np.array(taken, dtype=np.float64).T.copy(), strict=True)
    )
    numeric = [c.name for c in columns if c.kind is ColumnKind.NUMERIC]
    if number % 8 == 7 and numeric:
        values[numeric[number // 8 % len(numeric)]][:] = FAR[number // 8 % len(FAR)]
    missing = {
        c.name: np.full(m, number % 5 == 4 and bool(rng.random() < 0.5))
        for c in columns
        if c.may_be_missing
    }
    if m > 1:
        present = number // 3 % (m + 1) if mixed else m
        missing[ABSENT] = np.arange(m) >= present
    elif unit.gaps:
        missing[ABSENT] = np.full(1, number % 3 == 2)
    for name, mask in missing.items():
        if name:
            values[name][mask] = 0.0
    return Block(0, m, values, missing)


def searched(planned: Planned, table: Block, pool: Sequence[Block]) -> Iterator[Found]:
    """Each step of sums of a plan, on a path of releases from one table."""
    recipe = planned.run()
    step: Step = next(recipe)
    while True:
        if isinstance(step, SumStep):
            yield farthest(step, pool)
        try:
            steps = isinstance(step, SumStep)
            step = recipe.send(drive_step(step, table) if steps else released(step, table))
        except StopIteration:
            return


def farthest(step: SumStep, pool: Sequence[Block]) -> Found:
    """The two units of the pool that are the farthest apart in the noise's metric."""
    sums = [registry.encode_all(step.parts, step.map_fn(u), joint=step.joint) for u in pool]
    noisy = [k for k, part in enumerate(step.parts) if not isinstance(part, QuantileTree)]
    scales = {k: np.sqrt(2) * drawn_scales(step.parts[k], sums[0][k]) for k in noisy}
    points = np.array(
        [
            np.concatenate(
                [np.zeros(1), *((entries(step.parts[k], s[k]) / scales[k]).ravel() for k in noisy)]
            )
            for s in sums
        ]
    )
    squares = np.sum(points**2, axis=1)
    gaps = squares[:, None] + squares - 2 * points @ points.T
    i, j = np.unravel_index(int(np.argmax(gaps)), gaps.shape)
    loss = float(np.sum((points[i] - points[j]) ** 2)) * RHO_UNITS
    return Found(step.label, loss, (int(i), int(j)), registry.rho(step))


def table_of(facts: DatasetFacts, cells: Mapping[str, FloatArray]) -> Block:
    """A whole table as one block, all places filled, nothing missing."""
    n = facts.slots
    missing = {c.name: np.zeros(n, dtype=bool) for c in facts.schema.columns if c.may_be_missing}
    if facts.schema.unit.many_rows:
        missing[ABSENT] = np.zeros(n, dtype=bool)
    return Block(0, n, dict(cells), missing)
