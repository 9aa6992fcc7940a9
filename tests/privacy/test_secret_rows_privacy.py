# SPDX-License-Identifier: Apache-2.0
"""The choice of rows is the engine's: secret, drawn anew for every release, the same for its
steps.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Guarantee, Plan
from reticent_server.domain.private import Private
from reticent_server.domain.reservation import Reservation
from reticent_server.domain.row_subset import RowSubset
from reticent_server.domain.schema import Column, ColumnKind, Schema
from reticent_server.domain.steps import CountSum, SumStep
from reticent_server.engine.local import LocalEngine
from reticent_server.kinds.count.kind import Count
from reticent_server.mechanisms import secret_rows

N, RHO, STRIDE = 40_000, 10**12, 4
SCHEMA = Schema((Column("x", ColumnKind.NUMERIC, 0, 1),))


class Reader:
    """One column in increasing order."""

    n = N

    def batches(self, columns: Any) -> Iterator[Any]:
        yield Private(pa.RecordBatch.from_pydict({"x": pa.array(np.linspace(0, 1, N))}))


@dataclass(frozen=True)
class Halves:
    def __call__(self, block: Any) -> tuple[Any]:
        return (np.where(block.columns["x"] > 0.5, 1.0, 0.0),)


@dataclass(frozen=True)
class Twice:
    """Two steps on the part that a plan names, and what each was told of it."""

    subset: RowSubset
    columns: tuple[str, ...] = ("x",)
    passes: int = 2
    mechanism: str = "test"
    reference: str = "test"
    rho: int = 2 * RHO

    @property
    def forecast(self) -> dict[Any, Any]:
        return {}

    def run(self) -> Iterator[Any]:
        found = []
        for _ in range(2):
            (each,) = yield SumStep("halves", (CountSum(2, RHO),), Halves(), self.subset)
            found.append([each.rows, *each.values.tolist()])
        return {"found": found}


class Ledger:
    def confirm(self, reservation: Any) -> bool:
        return True


def released(subset: Any) -> Any:
    cost = PrivacyCost(10**9, 10**12, 2 * RHO)
    facts = DatasetFacts("d", "d", 1, "v1", N, SCHEMA)
    guarantee = Guarantee("unconditional", "row", 1.0, 1e-6, "test", "test", "test")
    plan = Plan(facts, Count(), 1.0, 1e-6, cost, guarantee, Twice(subset), 100)
    engine = LocalEngine(
        lambda _: Reader(), Ledger(), cache_bytes=1 << 24, threads=1, block_rows=8192
    )
    try:
        return engine.execute(plan, Reservation("r", "v1", cost, "2026-01-01T00:00:00Z")).result
    finally:
        engine.close()


def test_every_release_has_a_choice_of_its_own_for_all_its_steps() -> None:
    """A key in the plan counts for nothing: what can be planned can be known."""
    known = RowSubset(STRIDE, b"known")
    found = [released(known)["found"] for _ in range(12)]
    assert len({first[0] for first, _ in found}) > 3
    for first, second in found:
        assert first[0] == second[0]
        assert abs(first[0] - sum(first[1:])) < 60  # noise of 1/√2 · √(1/ρ), far below the rows
        assert abs(first[1] - second[1]) < 60
        assert abs(first[0] - N / STRIDE) < 6 * np.sqrt(N * 3 / 16)


def test_the_places_of_a_unit_are_chosen_together() -> None:
    """The plan says how many a unit has; the key is the engine's."""
    found = secret_rows.chosen(RowSubset(STRIDE, b"known", 5), b"drawn")
    assert found == RowSubset(STRIDE, b"drawn", 5)
    places = found.positions(0, 10_000).reshape(-1, 5)
    assert (places % 5 == np.arange(5)).all()


def test_a_sorted_table_is_sampled_as_one_in_any_order() -> None:
    """The law of the sums over the choice is the same after a permutation of the rows: here,
    reversed and shifted by one, as when one value of a sorted file changes.
    """
    sums = {"as it is": [], "reversed": [], "shifted": []}
    for k in range(400):
        chosen = RowSubset(STRIDE, k.to_bytes(2, "big") + b"test").positions(0, 2000)
        x = np.arange(2000) >= 1000
        sums["as it is"].append(x[chosen].sum())
        sums["reversed"].append(x[::-1][chosen].sum())
        sums["shifted"].append(np.roll(x, 1)[chosen].sum())
    sd = np.sqrt(1000 * 3 / 16)
    for found in sums.values():
        assert abs(np.mean(found) - 250) < 5 * sd / 20
        assert abs(np.std(found) / sd - 1) < 0.2
