# SPDX-License-Identifier: Apache-2.0
"""The privacy of features of persons: neighbours differ in one row of the view, and sums by what
one row may change.

From files through the vault and the engine to the exact integer sums before the noise: a person's
rows are replaced by others of any number, one, m or m + 1 of them. The bound that the noise is made
for is that of a table with one row a person, and replacing somebody's rows attains it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from reticent_server.domain.cost import RHO_UNITS, PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.persons import PersonView
from reticent_server.domain.private import Private
from reticent_server.domain.schema import Column, LinkedTable, Schema, Unit
from reticent_server.domain.schema import ColumnKind as Kind
from reticent_server.domain.source import LinkedTables, NamedTable
from reticent_server.domain.steps import PowerSum, SumStep
from reticent_server.engine.blocks import Table
from reticent_server.engine.local import LocalEngine
from reticent_server.engine.persons import view_reader
from reticent_server.formula.features import parse_view
from reticent_server.kinds.mean.kind import KIND, Mean
from reticent_server.mechanisms.power_sum import LIMIT
from reticent_server.vault.ingest import ingest
from reticent_server.vault.loading import loading
from reticent_server.vault.person_tables import LinkedReader
from reticent_server.vault.readers import open_reader
from support.databases.vaults import OWNER, Vault
from support.seeds import seeded

M, N = 4, 30
SCHEMA = Schema(
    (
        Column("t", Kind.INTEGER, 0, 9),
        Column("x", Kind.NUMERIC, -1, 1, missing=("",)),
        Column("b", Kind.BOOLEAN, 0, 1),
    ),
    Unit("person", M),
)
FEATURES = {
    "rows": "count(where=b == 1)",
    "total": "sum(x, where=t > 2)",
    "average": "mean(x)",
    "first": "first(x, by=t)",
    "last": "last(x, by=t, where=b == 0, none=0)",
    "ever": "any(x > 0.5)",
    "always": "all(b)",
    "some": "share(x > 0 and b == 1)",
}
VIEW = parse_view(FEATURES, SCHEMA)
Rows = Sequence[tuple[int, float | None, int]]
CELLS = (-1.0, -0.3, 0.1, 0.2, 1.0, None)


def people(generator: np.random.Generator) -> dict[str, Rows]:
    """Rows (t, x, b) by person: values that do not add up exactly, equal times, missing cells."""
    return {f"p{k}": rows_of(generator, int(generator.integers(1, M + 1))) for k in range(N)}


def rows_of(generator: np.random.Generator, number: int) -> Rows:
    picks = generator.integers(0, len(CELLS), number)
    times, flags = generator.integers(0, 5, number), generator.integers(0, 2, number)
    return [(int(t), CELLS[k], int(b)) for t, k, b in zip(times, picks, flags, strict=True)]


def view_of(
    vault: Vault, tmp_path: Path, rows: Mapping[str, Rows], generator: np.random.Generator
) -> dict[str, np.ndarray]:
    """(N,) of each column and mask of the view, from a file whose lines stand in a random order."""
    lines = [f"{p},{t},{'' if x is None else x},{b}" for p, own in rows.items() for t, x, b in own]
    file = tmp_path / "rows.csv"
    file.write_text("\n".join(["person,t,x,b", *generator.permutation(lines)]) + "\n")
    loaded = vault.load(file, SCHEMA)
    reader = view_reader(open_reader(vault.url, loaded.source), VIEW, loaded.n)
    (batch,) = (found.unwrap() for found in reader.batches(tuple(FEATURES)))
    names = batch.schema.names
    return {n: np.asarray(batch.column(n).to_numpy(zero_copy_only=False), float) for n in names}


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    return Vault(f"sqlite:///{tmp_path}/vault.db")


def test_the_order_of_the_file_changes_no_bit(vault: Vault, tmp_path: Path) -> None:
    generator = seeded(1)
    rows = people(generator)
    views = [view_of(vault, tmp_path, rows, generator) for _ in range(5)]
    for view in views[1:]:
        assert {n: v.tobytes() for n, v in view.items()} == {
            n: v.tobytes() for n, v in views[0].items()
        }


@pytest.mark.parametrize("number", [1, M, M + 1, 2 * M])
def test_neighbours_differ_in_one_row_of_the_view(
    vault: Vault, tmp_path: Path, number: int
) -> None:
    generator = seeded(number)
    rows = people(generator)
    before = view_of(vault, tmp_path, rows, generator)
    for person in ("p0", "p7", f"p{N - 1}"):
        after = view_of(vault, tmp_path, rows | {person: rows_of(generator, number)}, generator)
        differs = np.zeros(N, bool)
        for name, values in before.items():
            differs |= values.view(np.int64) != after[name].view(np.int64)
        assert np.count_nonzero(differs) <= 1


class Stored:
    """A view as a reader."""

    n = N

    def __init__(self, view: Mapping[str, np.ndarray]) -> None:
        self._view = view

    def batches(self, columns: Sequence[str]) -> Iterator[Private[Any]]:
        arrays = {name: pa.array(self._view[name]) for name in columns}
        yield Private(pa.RecordBatch.from_pydict(arrays))


def sums(view: Mapping[str, np.ndarray], column: str, step: SumStep) -> np.ndarray:
    """The exact integers of a step over a view, by the engine, before any noise."""
    ledger: Any = None
    engine = LocalEngine(
        lambda _: Stored(view), ledger, cache_bytes=1 << 20, threads=1, block_rows=64
    )
    (total,) = engine.totals(Table(Stored(view), "v", VIEW.schema, (column,)), step)
    return np.asarray(total.unwrap(), dtype=np.float64)


def test_a_person_attains_the_bound_of_one_row_and_nobody_exceeds_it(
    vault: Vault, tmp_path: Path
) -> None:
    """Nobody's rows with b = 1 against m of them: the feature goes from one bound to the other."""
    generator = seeded(3)
    rows = people(generator)
    facts = DatasetFacts("d", "d", 1, "v", N, VIEW.schema)
    step = next(KIND.plan(facts, Mean("rows"), PrivacyCost(10**9, 10**9, RHO_UNITS)).run())
    assert isinstance(step, SumStep)
    (part,) = step.parts
    assert isinstance(part, PowerSum)
    assert part.unit_rows == 1
    replacements: list[Rows] = [[(1, 0.1, 0)], *([(1, 0.1, 1)] * k for k in (1, M, M + 1, 3 * M))]
    totals = [
        sums(view_of(vault, tmp_path, rows | {"p3": own}, generator), "rows", step)
        for own in replacements
    ]
    largest = max(float(np.linalg.norm(a - b)) for a in totals for b in totals)
    assert 0.9999 * LIMIT < largest <= LIMIT


def test_every_value_is_one_that_the_public_schema_allows(vault: Vault, tmp_path: Path) -> None:
    generator = seeded(5)
    rows = people(generator) | {"p1": [(9, 1.0, 1)] * (3 * M), "p2": [(9, -1.0, 1)] * (3 * M)}
    allowed(VIEW, view_of(vault, tmp_path, rows, generator))


def allowed(view: PersonView, values: dict[str, np.ndarray]) -> None:
    for column in view.schema.columns:
        there = ~values.get(f"{column.name}:missing", np.zeros(N)).astype(bool)
        assert np.all(values[column.name][there] >= column.lower)
        assert np.all(values[column.name][there] <= column.upper)
        if column.kind is not Kind.NUMERIC:
            assert np.all(values[column.name] == np.round(values[column.name]))


LINKED = {
    "visits": Schema(
        (Column("x", Kind.NUMERIC, -1, 1), Column("t", Kind.INTEGER, 0, 9)), Unit("person", M)
    ),
    "drugs": Schema((Column("dose", Kind.NUMERIC, 0, 5),), Unit("person", 2)),
}
"""Two tables about the same persons."""
OF_BOTH = {
    "visits": "count(v)",
    "last": "last(v.x, by=v.t, none=0)",
    "dose": "sum(d.dose)",
    "high": "any(d.dose > 4)",
}
Both = Mapping[str, tuple[Rows, Sequence[float]]]


def linked_view(vault: Vault, tmp_path: Path, persons: Both, seed: int) -> dict[str, np.ndarray]:
    """(N,) of each column of a view of both tables, whose files stand in random orders."""
    generator, tables = seeded(seed), []
    texts = {
        "visits": [f"{p},{x},{t}" for p, (visits, _) in persons.items() for t, x, _ in visits],
        "drugs": [f"{p},{dose}" for p, (_, doses) in persons.items() for dose in doses],
    }
    for name, alias in (("visits", "v"), ("drugs", "d")):
        columns = ",".join(column.name for column in LINKED[name].columns)
        file = tmp_path / f"{name}.csv"
        lines = [f"person,{columns}", *generator.permutation(texts[name])]
        file.write_text("\n".join(lines) + "\n")
        with loading(vault.url, OWNER, vault.tables) as load:
            source = ingest(load, file, LINKED[name], key=b"k" * 32).source
            vault.kept.add(source.table)
        tables.append(NamedTable(alias, name, 1, source))
    reader = LinkedReader(vault.url, LinkedTables(len(persons), tuple(tables)), None)
    view = parse_view(OF_BOTH, SCHEMA_OF_BOTH)
    found = view_reader(reader, view, len(persons)).batches(tuple(OF_BOTH))
    (batch,) = (each.unwrap() for each in found)
    return {n: np.asarray(batch.column(n)) for n in batch.schema.names}


SCHEMA_OF_BOTH = Schema(
    tuple(
        replace(column, name=f"{alias}.{column.name}")
        for alias, name in (("v", "visits"), ("d", "drugs"))
        for column in LINKED[name].columns
    ),
    Unit("person", M),
    tables=(LinkedTable("v", M), LinkedTable("d", 2)),
)


def both(generator: np.random.Generator, visits: int, drugs: int) -> tuple[Rows, Sequence[float]]:
    rows = [(int(t), 0.25 * int(x), 1) for t, x in generator.integers(0, 4, (visits, 2))]
    return rows, generator.integers(0, 6, drugs).astype(float).tolist()


@pytest.mark.sample(4)
@pytest.mark.parametrize("numbers", [(0, 1), (1, 0), (M, 2), (M + 1, 3), (2 * M, 0)])
def test_a_person_of_linked_tables_changes_one_row_of_the_view(
    vault: Vault, tmp_path: Path, numbers: tuple[int, int]
) -> None:
    """All rows of one person in all tables are replaced, by none in one of them among others."""
    generator = seeded(11)
    persons = {f"p{k}": both(generator, k % (M + 1), 1 + k % 2) for k in range(N)}
    before = linked_view(vault, tmp_path, persons, 1)
    again = linked_view(vault, tmp_path, persons, 2)
    neighbour = linked_view(vault, tmp_path, persons | {"p6": both(generator, *numbers)}, 3)
    differs = np.zeros(N, bool)
    for name, values in before.items():
        assert values.tobytes() == again[name].tobytes()
        differs |= values.view(np.int64) != neighbour[name].view(np.int64)
    assert np.count_nonzero(differs) == 1
    assert before["visits"].sum() == sum(len(visits) for visits, _ in persons.values())
