# SPDX-License-Identifier: Apache-2.0
"""Helpers of the regression's tests: designs, tables, and a driver through the real mechanisms."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reticent_server.domain.design import ColumnValue, Design, Term
from reticent_server.domain.facts import (
    PROFILE_PROBABILITIES,
    ColumnProfile,
    DatasetFacts,
    Profile,
)
from reticent_server.domain.plan import Recipe
from reticent_server.domain.private import Private
from reticent_server.domain.schema import Column, ColumnKind, Schema, Unit
from reticent_server.domain.steps import (
    Block,
    ColumnStep,
    FloatArray,
    Part,
    Released,
    Step,
    SumStep,
)
from reticent_server.kinds.shared.linear.query import LinearRegression
from reticent_server.mechanisms import registry
from support.kinds.results import replied

Table = dict[str, FloatArray]

WIDE = 1e3
HUGE_RHO = 10**22  # noise far below the quantisation of the sums


def numeric(name: str, lower: float = -WIDE, upper: float = WIDE) -> Column:
    return Column(name, ColumnKind.NUMERIC, lower, upper)


def boolean(name: str) -> Column:
    return Column(name, ColumnKind.BOOLEAN, 0.0, 1.0)


def plain_term(column: Column) -> Term:
    value = ColumnValue(column.name)
    return Term(column.name, (value,), column.lower, column.upper, dummy=column.is_dummy)


def plain_design(
    columns: list[Column], response: Column, *, intercept: bool = True, **more: Any
) -> Design:
    """response ~ columns, with more fields of the design."""
    names = (*(c.name for c in columns), response.name)
    terms = tuple(plain_term(c) for c in columns)
    return Design(plain_term(response), terms, intercept, more.pop("where", None), names, **more)


def profile_of(
    table: Table, columns: list[Column], levels: Mapping[str, int] | None = None
) -> Profile:
    """The table's exact quantiles and counts: a stand-in for a released profile.

    levels: numbers of levels of further columns, by name.
    """
    found = {
        name: ColumnProfile(counts=tuple(np.bincount(table[name].astype(int), minlength=k) * 1.0))
        for name, k in (levels or {}).items()
    }
    for column in columns:
        values = table[column.name]
        if column.is_dummy:
            ones = float(values.sum())
            found[column.name] = ColumnProfile(counts=(len(values) - ones, ones))
        else:
            quantiles = np.quantile(values, PROFILE_PROBABILITIES, method="inverted_cdf")
            found[column.name] = ColumnProfile(quantiles=tuple(quantiles.tolist()))
    return Profile(found)


def schema_of(columns: list[Column]) -> Schema:
    return Schema(tuple(columns))


def facts_of(
    n: int, columns: list[Column], profile: Profile | None, max_rows: int = 1
) -> DatasetFacts:
    unit = Unit("person", max_rows) if max_rows > 1 else Unit()
    return DatasetFacts("t", "t", 1, "version", n, Schema(tuple(columns), unit), profile)


def query(**more: Any) -> LinearRegression:
    return LinearRegression("y ~ x", **more)


def whole(table: Table, missing: Mapping[str, Any] | None = None) -> Block:
    return Block(0, len(next(iter(table.values()))), table, missing or {})


def blocks_of(block: Block, rows: int) -> Iterator[Block]:
    """The block cut into blocks of at most `rows` records."""
    for start in range(0, block.rows, rows):
        cut = slice(start, min(start + rows, block.rows))
        columns = {k: v[cut] for k, v in block.columns.items()}
        missing = {k: v[cut] for k, v in block.missing.items()}
        yield Block(block.start + start, cut.stop - start, columns, missing)


def totals(step: Step, block: Block, rows: int = 1 << 20) -> list[Any]:
    """The step's exact integer sums; of the step's rows, where it is about a subset."""
    assert isinstance(step, SumStep)
    sums: list[Any] = []
    block = of_step(step, block)
    for piece in blocks_of(block, rows):
        coded = registry.encode_all(step.parts, step.map_fn(piece), joint=step.joint)
        sums = coded if not sums else [a + b for a, b in zip(sums, coded, strict=True)]
    return sums


def of_step(step: Step, block: Block) -> Block:
    """The block's rows that a step adds, as a block of their own."""
    if isinstance(step, ColumnStep) or step.subset is None:
        return block
    index = step.subset.positions(block.start, block.start + block.rows) - block.start
    columns = {name: values[index] for name, values in block.columns.items()}
    missing = {name: mask[index] for name, mask in block.missing.items()}
    return Block(block.start, len(index), columns, missing)


Telling = Callable[[Step, tuple[Released, ...]], tuple[Released, ...]]


def as_released(step: Step, released: tuple[Released, ...]) -> tuple[Released, ...]:
    return released


def farther(way: float) -> Telling:
    """Of the last step a score as if the solution were `way` away from where the steps before have
    led, in the first direction of the whitened space.
    """

    def told(step: Step, released: tuple[Released, ...]) -> tuple[Released, ...]:
        if not step.label.startswith("newton step") or len(released) < 3:
            return released
        score, jacobian, *others = released
        moved = replace(score, values=score.values + way * jacobian.values[:, 0])
        return moved, jacobian, *others

    return told


@dataclass
class Trace:
    """A driven recipe: its result, and each step with what was released."""

    result: Any
    steps: list[Step]
    released: list[tuple[Released, ...]]


def drive(recipe: Recipe, block: Block, told: Telling = as_released) -> Trace:
    """Runs a recipe through the real mechanisms. told: what it is told of a step's releases."""
    steps: list[Step] = []
    sent: list[tuple[Released, ...]] = []
    try:
        step = next(recipe)
        while True:
            released = drive_step(step, block)
            steps.append(step)
            sent.append(released)
            step = recipe.send(told(step, released))
    except StopIteration as stop:
        return Trace(replied(stop.value), steps, sent)


def drive_step(step: Step, block: Block) -> tuple[Released, ...]:
    """One step's parts, released."""
    assert isinstance(step, SumStep)
    rows = None if step.subset is None else of_step(step, block).rows
    found = (release(p, s) for p, s in zip(step.parts, totals(step, block), strict=True))
    return tuple(replace(each, rows=rows) for each in found)


def release(part: Part, total: Any) -> Released:
    return registry.release(part, Private(total))


def linear_table(n: int, p: int, rng: np.random.Generator, noise: float = 0.5) -> Table:
    """x of unit variance with AR(.5) correlation, y = Σx + noise·N(0, 1)."""
    correlation = 0.5 ** np.abs(np.subtract.outer(range(p), range(p)))
    X = rng.normal(size=(n, p)) @ np.linalg.cholesky(correlation).T
    table = {f"x{j}": np.ascontiguousarray(X[:, j]) for j in range(p)}
    return {**table, "y": X.sum(axis=1) + noise * rng.normal(size=n)}
