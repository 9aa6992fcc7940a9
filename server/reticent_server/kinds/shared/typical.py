# SPDX-License-Identifier: Apache-2.0
"""Columns of a table for typical questions about it: chosen from the schema alone, those without
missing cells first."""

from collections.abc import Callable

from reticent_server.domain.schema import Column, Schema
from reticent_server.formula.labels import quote

REGRESSORS = 3
"""Of a typical regression: with more, few of whose terms stand for more than one, forecasts say
little else."""

MANY_LEVELS = 12
"""Levels of a column that a typical table has a row for; more are rarely read."""


def numbers(schema: Schema) -> list[str]:
    """Columns that have a mean and are no dummies."""
    return _named(schema, lambda c: c.kind.has_mean and not c.is_dummy)


def dummies(schema: Schema) -> list[str]:
    """Columns of yes and no."""
    return _named(schema, lambda c: c.is_dummy)


def categories(schema: Schema) -> list[str]:
    """Columns of a few labels, and those of yes and no."""
    few = _named(schema, lambda c: c.kind.has_levels and len(c.levels) <= MANY_LEVELS)
    return few + dummies(schema)


def formula(response: str, regressors: list[str]) -> str:
    """A response on the first regressors that are not the response."""
    others = [name for name in regressors if name != response][:REGRESSORS]
    return f"{quote(response)} ~ {' + '.join(map(quote, others))}"


def _named(schema: Schema, belongs: Callable[[Column], bool]) -> list[str]:
    own = [c for c in schema.columns if belongs(c) and c.name != schema.unit.column]
    return [c.name for c in sorted(own, key=lambda c: c.may_be_missing)]
