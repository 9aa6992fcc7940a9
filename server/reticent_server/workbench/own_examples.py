# SPDX-License-Identifier: Apache-2.0
"""Examples in the words of a form that name the table's own columns."""

import re

from reticent_server.domain.schema import Column, Schema
from reticent_server.formula.labels import quote

_EXAMPLE = re.compile(r"[Ss]uch as `[^`]*`")


def own_example(told: str, field: str, schema: Schema) -> str:
    """What a field is told to be, with an example of this table in the place of the general one,
    where one can be made."""
    example = _where(schema) if field == "where" else _formula(told, schema)
    if not example:
        return told
    return _EXAMPLE.sub(lambda found: f"{found[0][:7]} `{example}`", told, count=1)


def _numbers(schema: Schema) -> list[Column]:
    return [c for c in schema.columns if c.kind.is_number]


def _factors(schema: Schema) -> list[Column]:
    return [c for c in schema.columns if c.kind.has_levels]


def _where(schema: Schema) -> str:
    """A condition on a number, or on a level."""
    conditions = [
        f"{quote(c.name)} >= {c.shown((c.lower + c.upper) // 2)}"
        if not c.is_date
        else f'{quote(c.name)} >= "{c.shown(c.lower)}"'
        for c in _numbers(schema)[:1]
    ]
    conditions += [f'{quote(c.name)} == "{c.levels[0]}"' for c in _factors(schema)[:1]]
    return " and ".join(conditions)


def _formula(told: str, schema: Schema) -> str:
    """A formula of two numbers and a factor, where the general example is one."""
    numbers, factors = [quote(c.name) for c in _numbers(schema)], _factors(schema)
    if "`y ~ x1" not in told or len(numbers) < 2:
        return ""
    return " + ".join(
        [f"{numbers[0]} ~ {numbers[1]}", *(f"C({quote(c.name)})" for c in factors[:1])]
    )
