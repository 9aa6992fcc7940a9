# SPDX-License-Identifier: Apache-2.0
"""The promise of a reply, in words that stand in every release."""

from dataclasses import replace

from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Guarantee, Planned


def guarantee_of(
    facts: DatasetFacts, planned: Planned, epsilon: float, delta: float, rows: int | None = None
) -> Guarantee:
    """Conditional where the plan names assumptions, else unconditional.

    rows: the most rows of one unit, where the plan is about a table with one row for each; None: as
    in the facts.
    """
    assumptions = planned.assumptions
    guarantee = unconditional(facts, planned, epsilon, delta, rows)
    if not assumptions:
        return guarantee
    statement = guarantee.statement.replace(
        "this holds for every table", "this holds under the assumptions that are named"
    )
    return replace(guarantee, tier="conditional", statement=statement, assumptions=assumptions)


def unconditional(
    facts: DatasetFacts, planned: Planned, epsilon: float, delta: float, rows: int | None = None
) -> Guarantee:
    """(ε, δ) for every pair of neighbouring populations, at every n, without assumptions.

    Neighbours differ in one row of one table, and in what became of it in later versions; or, where
    the unit is a column, in all rows of the person of one place, in every table, version and link
    of the population (docs/proofs.md).
    """
    unit = facts.schema.unit
    replaced = (
        "one row"
        if unit.column is None
        else (
            f"all rows of one {unit.column} by any others (at most {rows or unit.max_rows}, or "
            "none), in every table and version of its population,"
        )
    )
    event = f", but for an event of probability {delta:g}" if delta else ""
    statement = (
        f"Replacing {replaced} changes the probability of any reply by a factor of at most "
        f"exp({epsilon:g}){event}; this holds for every table."
    )
    mechanism = planned.mechanism
    if unit.several_rows and not planned.of_persons:
        mechanism += f"; every row at its own bound, times {unit.max_rows} rows"
    return Guarantee(
        tier="unconditional",
        unit="row" if unit.column is None else unit.column,
        epsilon=epsilon,
        delta=delta,
        mechanism=mechanism,
        statement=statement,
        reference=planned.reference,
    )
