# SPDX-License-Identifier: Apache-2.0
"""A view of persons as a reader: the same bits however rows come in, and one row of it for a
person.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from reticent_server.domain.persons import PersonView
from reticent_server.domain.private import Private
from reticent_server.domain.schema import Column, Schema, Unit
from reticent_server.domain.schema import ColumnKind as Kind
from reticent_server.engine import persons as persons_module
from reticent_server.engine.persons import view_reader
from reticent_server.errors import Unavailable
from reticent_server.formula.features import parse_view
from reticent_server.vault.ports import RowsOfPersons
from support.seeds import seeded

M, N = 5, 40
SCHEMA = Schema(
    (
        Column("x", Kind.NUMERIC, -1, 1),
        Column("t", Kind.INTEGER, 0, 9, missing=("NA",)),
        Column("b", Kind.BOOLEAN, 0, 1),
    ),
    Unit("person", M),
)
FEATURES = {
    "rows": "count()",
    "total": "sum(x)",
    "average": "mean(x, where=b == 1)",
    "late": "last(x, by=t)",
    "ever": "any(x > 0.5)",
    "worst": "min(x, none=1)",
}
VIEW = parse_view(FEATURES, SCHEMA)
NAMES = tuple(FEATURES)


class Places:
    """Rows at places k·m … of person k, as the vault gives them, in batches of `size`."""

    def __init__(
        self, people: Sequence[np.ndarray[Any, Any]], size: int, bad: bool = False
    ) -> None:
        self.n = len(people) * M
        self._size = size
        self._bad = bad
        cells = np.zeros((len(people), M, 5))
        cells[:, :, 3] = 1.0
        for person, rows in zip(cells, people, strict=True):
            person[: len(rows)] = rows
        self._cells = cells.reshape(-1, 5)

    def batches(self, columns: Sequence[str]) -> Iterator[Private[Any]]:
        for start in range(0, self.n, self._size):
            x, t, b, absent, missing = self._cells[start : start + self._size].T
            values = {"x": x, "t": t, "b": b}
            fields = {name: values[name] for name in columns} | {":missing": absent == 1}
            if "t" in columns:
                fields["t:missing"] = missing == 1
            if self._bad:
                fields |= {name + ":bad": (x == 0.25) & (name == "x") for name in columns}
            yield Private(pa.RecordBatch.from_pydict({k: pa.array(v) for k, v in fields.items()}))


def people(generator: np.random.Generator, number: int = N) -> list[np.ndarray[Any, Any]]:
    """Rows (x, t, b, 0, whether t is missing) of persons with 0 to m of them."""
    made = []
    for rows in generator.integers(0, M + 1, number):
        x = generator.uniform(-1, 1, rows)
        t = generator.integers(0, 3, rows)
        b, missing = generator.integers(0, 2, (2, rows))
        made.append(np.stack([x, t, b, np.zeros(rows), missing], axis=1))
    return made


def view_of(
    rows: Sequence[np.ndarray[Any, Any]], size: int = 7, view: PersonView = VIEW
) -> dict[str, bytes]:
    """The view's columns and masks, each person's bits after another's."""
    reader = view_reader(Places(rows, size), view, len(rows))
    assert reader.n == len(rows)
    (batch,) = (found.unwrap() for found in reader.batches(NAMES))
    assert batch.num_rows == len(rows)
    return {
        n: np.asarray(batch.column(n).to_numpy(zero_copy_only=False)).astype(float).tobytes()
        for n in batch.schema.names
    }


def test_the_view_is_what_a_loop_over_persons_gives() -> None:
    rows = people(seeded(1))
    reader = view_reader(Places(rows, 11), VIEW, N)
    (batch,) = (found.unwrap().to_pydict() for found in reader.batches(NAMES))
    assert batch["rows"] == [len(each) for each in rows]
    assert batch["total"] == [sum(sorted(each[:, 0])) for each in rows]
    assert batch["ever"] == [float(any(each[:, 0] > 0.5)) for each in rows]
    assert batch["worst"] == [min(each[:, 0], default=1.0) for each in rows]
    used = [each[each[:, 2] == 1, 0] for each in rows]
    assert batch["average:missing"] == [len(each) == 0 for each in used]
    timed = [sorted(each[each[:, 4] == 0][:, [1, 0]].tolist()) for each in rows]
    assert batch["late"] == [each[-1][1] if each else 0.0 for each in timed]
    assert batch["late:missing"] == [not each for each in timed]


@pytest.mark.parametrize("at_once", [1, 3, 1 << 18])
def test_neither_batches_nor_stored_order_change_a_bit(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = seeded(2)
    rows = people(generator)
    wanted = view_of(rows, size=1 << 16)
    monkeypatch.setattr(persons_module, "ROWS_AT_ONCE", at_once)
    for size in (1, 2, 5, 64):
        shuffled = [generator.permutation(each) for each in rows]
        assert view_of(shuffled, size) == wanted


@pytest.mark.parametrize("number", [0, 1, M])
@pytest.mark.parametrize("place", [0, 17, N - 1])
def test_another_persons_rows_change_one_row_of_the_view(number: int, place: int) -> None:
    generator = seeded(3)
    rows = people(generator)
    rows[place] = np.array([[0.9, 1, 1, 0, 0], [-0.8, 2, 1, 0, 0]])
    other = np.tile([0.1, 0.0, 0.0, 0.0, 0.0], (number, 1))
    neighbour = [*rows[:place], other, *rows[place + 1 :]]
    before, after = view_of(rows), view_of(neighbour)
    assert before.keys() == after.keys()
    for name, bits in before.items():
        left, right = np.frombuffer(bits), np.frombuffer(after[name])
        assert np.delete(left, place).tobytes() == np.delete(right, place).tobytes()
    changed = [name for name in before if before[name] != after[name]]
    assert {"rows", "total", "late", "ever"} <= set(changed)


def test_a_cell_that_cannot_be_read_takes_its_row_out_of_the_features_that_read_it() -> None:
    rows = [np.array([[0.25, 1.0, 1.0, 0.0, 0.0], [0.5, 2.0, 1.0, 0.0, 0.0]])]
    reader = view_reader(Places(rows, 8, bad=True), VIEW, 1)
    (batch,) = (found.unwrap().to_pydict() for found in reader.batches(NAMES))
    assert (batch["rows"], batch["total"], batch["worst"]) == ([2.0], [0.5], [0.5])


def test_only_what_is_asked_for_is_read_and_made() -> None:
    asked: list[tuple[str, ...]] = []

    class Watched(Places):
        def batches(self, columns: Sequence[str]) -> Iterator[Private[Any]]:
            asked.append(tuple(columns))
            return super().batches(columns)

    rows = people(seeded(4))
    reader = view_reader(Watched(rows, 9), VIEW, N)
    (batch,) = (found.unwrap() for found in reader.batches(("worst", "rows")))
    assert batch.schema.names == ["worst", "rows"]
    (none,) = (found.unwrap() for found in reader.batches(()))
    assert (none.num_rows, none.num_columns) == (N, 0)
    assert asked == [("x",)]


def test_a_table_of_another_number_of_places_is_not_read() -> None:
    reader = view_reader(Places(people(seeded(5)), 9), VIEW, N - 1)
    with pytest.raises(Unavailable):
        list(reader.batches(NAMES))


class Linked:
    """Two tables about the same persons; whoever has no row in one has what is declared."""

    persons = 4

    def rows_of_persons(
        self, table: str | None, columns: Sequence[str]
    ) -> Iterator[Private[RowsOfPersons]]:
        slots = {"a": [0, 0, 3], "b": [1, 2, 2, 2]}[table or ""]
        values = {name: np.arange(len(slots), dtype=float) for name in columns}
        yield Private(RowsOfPersons(np.array(slots), values, {}))

    @property
    def n(self) -> int:
        raise AssertionError

    def batches(self, columns: Sequence[str]) -> Iterator[Private[Any]]:
        raise AssertionError


def test_features_of_several_tables_meet_in_one_row_a_person() -> None:
    feature_a, feature_b = parse_view({"a": "count()", "b": "max(t, none=-1)"}, SCHEMA).features
    tables = (replace(feature_a, table="a"), replace(feature_b, table="b"))
    view = PersonView(tables, VIEW.schema)
    (batch,) = (
        found.unwrap().to_pydict() for found in view_reader(Linked(), view, 4).batches("ab")
    )
    assert batch == {"a": [2, 0, 0, 1], "b": [-1, 0, 3, -1]}
