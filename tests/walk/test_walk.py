# SPDX-License-Identifier: Apache-2.0
"""The short form of the walk: every value of every field of every kind is planned over HTTP, and an
example of every kind goes the whole way."""

from collections.abc import Iterator
from typing import Any

import pytest

from reticent_server.domain.column_kind import ColumnKind
from reticent_server.kinds import KINDS
from walk.promises import broken_promises
from walk.questions import COLUMNS, NAMES, TABLES, Question
from walk.steps import Walk, names_a_part, sentinels, walking

KIND_NAMES = [kind.name for kind in KINDS if kind.for_analysts]
SPARED = 12
"""Of what no field enumerates (columns, terms, features) one in so many is planned for a field."""


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walk]:
    with walking(tmp_path_factory.mktemp("walk")) as made:
        yield made


def found(walk: Walk) -> list[str]:
    """The faults since the last look."""
    faults = list(map(str, walk.faults))
    walk.faults.clear()
    return faults


def test_there_is_a_column_of_every_kind_and_a_kind_for_every_name(walk: Walk) -> None:
    assert [kind for kind in ColumnKind if f"kind: {kind}" not in COLUMNS] == []
    assert set(walk.interface.kinds) == set(KIND_NAMES)


@pytest.mark.parametrize("kind", KIND_NAMES)
def test_every_value_of_every_field_is_planned(walk: Walk, kind: str) -> None:
    """Or refused in words that name what to change; and each choice that the interface enumerates
    is planned in some context."""
    values = walk.interface.values(kind, spared=SPARED)
    plans = [walk.taken(value) for value in values]
    assert found(walk) == []
    refused = [v for v, plan in zip(values, plans, strict=True) if v.is_choice and plan is None]
    assert refused == []
    assert {value.field for value in values} == set(walk.interface.names(kind))


@pytest.mark.parametrize("kind", KIND_NAMES)
def test_an_example_goes_the_whole_way(walk: Walk, kind: str) -> None:
    question = Question(TABLES[1].name, walk.interface.examples[kind][0], "zcdp", 4.0)
    plan = walk.planned(question)
    assert plan is not None, found(walk)
    walk.released(question, plan)
    assert found(walk) == []


def asked(query: Any) -> Question:
    return Question("rows_profiled", query, "basic", 1.0)


@pytest.mark.parametrize("kind", KIND_NAMES)
def test_a_column_that_there_is_not_is_named_by_its_field(walk: Walk, kind: str) -> None:
    """A formula and a condition say at which position it stands."""
    example = walk.interface.examples[kind][0]
    for field, value in example.items():
        if value not in NAMES:
            continue
        body = Question("rows", example | {field: "nowhere"}, "basic", 1.0).body
        reply = walk.send("basic", "POST", "/v1/plans", json=body)
        said = reply.json()["detail"]
        assert reply.status_code == 422
        assert said.startswith(f"{field} ") or "At position" in said, (field, said)


PROMISED = {"names": ["x"], "ci_ratios": [1.01], "half_widths": [2.0]}
NOT_PROMISED = {"names": ["x"], "ci_ratios": [None], "half_widths": [None]}
CAME = {
    "terms": ["x"],
    "confidence_intervals": [[-2.0, 2.0]],
    "standard_errors": [1.0],
    "privacy_standard_errors": [0.1],
}


@pytest.mark.parametrize(
    ("precision", "changed", "broken"),
    [
        (PROMISED, {}, None),
        (None, {}, None),
        (PROMISED, {"confidence_level": 0.99}, None),
        (PROMISED, {"confidence_intervals": [[-20.0, 20.0]]}, "not as wide as planned"),
        (PROMISED, {"confidence_intervals": [[-0.1, 0.1]]}, "not as wide as planned"),
        (PROMISED, {"confidence_intervals": [[None, None]]}, "promised and withheld"),
        (PROMISED, {"confidence_intervals": None}, "promised and there is none"),
        (NOT_PROMISED, {}, "promised and one came"),
        (NOT_PROMISED, {"privacy_standard_errors": [0.9]}, None),
        (NOT_PROMISED, {"confidence_intervals": [[None, None]]}, None),
    ],
)
def test_a_broken_promise_is_seen(precision: Any, changed: Any, broken: str | None) -> None:
    """In a group's record as at the top; of a condition that not all meet, nothing is known."""
    for result in (CAME | changed, {"groups": [{"level": "a"} | CAME | changed]}):
        said = [what for what, _ in broken_promises(asked({}), precision, result)]
        assert [broken in what for what in said if broken] == ([True] if broken else [])
        assert bool(said) == bool(broken)
    assert list(broken_promises(asked({"where": "x > 2"}), precision, CAME | changed)) == []


def test_a_sentinel_is_seen() -> None:
    plan = {"query": {"upper": 1e40}, "cost": {"rho": 0.5, "epsilon": None}, "deadline_ms": 10**16}
    assert sentinels(plan | {"forecast": {"limit": 1e40}}) == []
    for number in (9223372036.854776, 2.0**63, float("inf"), 1e300):
        assert sentinels(plan | {"forecast": {"notes": [number]}}) == [number]


def test_a_refusal_without_a_name_is_seen(walk: Walk) -> None:
    question = Question("rows", walk.interface.examples["roc"][0], "basic", 1.0)
    for said, named in {
        "outcome must be a boolean column.": True,
        "At position 3 of the formula: write a column.": True,
        "A threshold is a number.": True,
        "y has no levels.": True,
        "group must be a categorical column.": False,
        "This cannot be answered.": False,
    }.items():
        assert names_a_part(said, question, walk.interface) == named, said
