# SPDX-License-Identifier: Apache-2.0
"""Features of a person: their texts, bounds, and what is refused."""

import pytest

from reticent_server.domain.design import Apply, ColumnValue, Compare
from reticent_server.domain.persons import Feature
from reticent_server.domain.schema import Column, LinkedTable, Schema, Unit
from reticent_server.domain.schema import ColumnKind as Kind
from reticent_server.errors import InvalidFormula, InvalidQuery
from reticent_server.formula.features import parse_view

M = 8
VISITS = Schema(
    (
        Column("date", Kind.INTEGER, 0, 3650),
        Column("bmi", Kind.NUMERIC, 10, 70, missing=("NA",)),
        Column("smoke", Kind.BOOLEAN, 0, 1),
        Column("cost", Kind.NUMERIC, -5, 100),
        Column("stays", Kind.INTEGER, 0, 9),
        Column("ward", Kind.CATEGORICAL, 0, 2, ("er", "icu", "day")),
        Column("age at", Kind.INTEGER, 0, 120),
        Column("by", Kind.NUMERIC, 0, 1),
        Column("wide", Kind.NUMERIC, 0, 1e50),
        Column("many", Kind.INTEGER, 0, 2**53),
    ),
    Unit("person", M),
)


def read(text: str, schema: Schema = VISITS) -> Feature:
    (feature,) = parse_view({"f": text}, schema).features
    return feature


@pytest.mark.parametrize(
    ("text", "kind", "lower", "upper", "missing"),
    [
        ("count()", Kind.INTEGER, 0, M, False),
        ('count(where=ward == "er")', Kind.INTEGER, 0, M, False),
        ("any(smoke)", Kind.BOOLEAN, 0, 1, False),
        ("all(smoke)", Kind.BOOLEAN, 0, 1, True),
        ("all(smoke, none=1)", Kind.BOOLEAN, 0, 1, False),
        ('share(ward == "er" or bmi > 30)', Kind.NUMERIC, 0, 1, True),
        ("min(bmi)", Kind.NUMERIC, 10, 70, True),
        ("max(stays)", Kind.INTEGER, 0, 9, True),
        ("mean(stays)", Kind.NUMERIC, 0, 9, True),
        ("mean(bmi, none=0)", Kind.NUMERIC, 0, 70, False),
        ("mean(bmi, where=smoke == 1, none=80)", Kind.NUMERIC, 10, 80, False),
        ("sum(stays)", Kind.INTEGER, 0, 9 * M, False),
        ("sum(cost)", Kind.NUMERIC, -5 * M, 100 * M, False),
        ("sum(bmi)", Kind.NUMERIC, 0, 70 * M, False),
        ("sum(many)", Kind.NUMERIC, 0, 2.0**53 * M, False),
        ("sum(stays, none=-1)", Kind.INTEGER, -1, 9 * M, False),
        ("last(bmi, by=date)", Kind.NUMERIC, 10, 70, True),
        ("first(smoke, by=date, none=0)", Kind.BOOLEAN, 0, 1, False),
        ("max(bmi**2)", Kind.NUMERIC, 100, 4900, True),
        ("mean(`age at`)", Kind.NUMERIC, 0, 120, True),
        ("max(by)", Kind.NUMERIC, 0, 1, True),
        ("last(by, by=by)", Kind.NUMERIC, 0, 1, True),
    ],
)
def test_bounds_come_from_public_bounds_and_the_rows_of_a_person(
    text: str, kind: Kind, lower: float, upper: float, missing: bool
) -> None:
    column = read(text).column
    assert (column.kind, column.lower, column.upper) == (kind, lower, upper)
    assert column.may_be_missing == missing


def test_a_feature_says_what_it_reads() -> None:
    feature = read('last(log(bmi), by=date, where=ward != "icu", none=3)')
    assert feature.value == Apply("log", ColumnValue("bmi"))
    assert (feature.by, feature.none) == ("date", 3.0)
    assert feature.where == Compare("ward", "!=", 1.0)
    assert set(feature.reads) == {"bmi", "date", "ward"}
    assert read("any(smoke)").condition == Compare("smoke", "==", 1.0)
    assert read("count()").reads == ()


def test_a_categorical_column_keeps_its_levels() -> None:
    column = read('last(ward, by=date, none="day")').column
    assert (column.levels, column.kind) == (("er", "icu", "day"), Kind.CATEGORICAL)
    assert read('last(ward, by=date, none="day")').none == 2.0
    assert read("first(ward, by=date)").column.may_be_missing


def test_the_view_has_one_row_a_person_and_the_declared_features() -> None:
    declared = Schema(VISITS.columns, VISITS.unit, "Visits", (("visits", "count()"),))
    view = parse_view({"bmi": "mean(bmi)"}, declared)
    assert [c.name for c in view.schema.columns] == ["visits", "bmi"]
    assert view.schema.unit == Unit("person", 1)
    assert view.reads == ("bmi",)
    assert [c.name for c in parse_view({}, declared).schema.columns] == ["visits"]
    with pytest.raises(InvalidQuery, match="given once"):
        parse_view({"visits": "count()"}, declared)


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("", "write one of count"),
        ("bmi", "write one of count"),
        ("median(bmi)", "write one of count"),
        ("`count`()", "write one of count"),
        ("count(", "write one of where="),
        ("count(bmi)", "write one of where="),
        ("count(none=3)", "write one of where="),
        ("count() + 1", "end the feature after"),
        ("any(bmi)", "compare bmi"),
        ("any(bmi > )", "not categorical, with a number"),
        ("any(ward)", "compare ward"),
        ("mean(ward)", "categorical; use a numeric"),
        ("max(ward)", "categorical; use a numeric"),
        ("mean(nothing)", "unknown column"),
        ("last(bmi)", "say what orders"),
        ("last(bmi, by=ward)", "has no order"),
        ("last(bmi, by=date, by=date)", "write one of where=, none="),
        ("mean(bmi, by=date)", "write one of where=, none="),
        ("mean(bmi none=3)", "write ','"),
        ("mean(bmi, none=x)", "write a number for none"),
        ("max(stays, none=1.5)", "whole number"),
        ("max(stays, none=1e300)", "whole number"),
        ("any(smoke, none=2)", "use 0 or 1"),
        ('last(ward, by=date, none="out")', "declared level"),
        ("last(ward, by=date, none=1)", "declared level"),
        ("sum(wide)", "too far apart"),
        ("mean(bmi, none=1e60)", "too far apart"),
        ("mean(log(cost))", "not defined on the declared bounds"),
        ("count(where=x)", "unknown column"),
        ("count(" + "(" * 40, "write one of where="),
        ("any(" + "(" * 40, "nest at most"),
    ],
)
def test_what_is_refused_says_what_to_write(text: str, advice: str) -> None:
    with pytest.raises(InvalidFormula) as refusal:
        parse_view({"f": text}, VISITS)
    assert advice in refusal.value.detail
    assert "feature 1" in refusal.value.detail or "declared bounds" in refusal.value.detail


def test_names_and_numbers_of_features_are_limited() -> None:
    for name in ("", "1", "a b", "a" * 65, "ä"):
        with pytest.raises(InvalidQuery, match="The name of a feature"):
            parse_view({name: "count()"}, VISITS)
    for number in (0, 65):
        with pytest.raises(InvalidQuery, match="Give 1 to 64 features"):
            parse_view({f"f{k}": "count()" for k in range(number)}, VISITS)
    with pytest.raises(InvalidQuery, match="whose unit is a column"):
        parse_view({"f": "count()"}, Schema(VISITS.columns))


LINKED = Schema(
    (
        Column("visits.bmi", Kind.NUMERIC, 10, 70),
        Column("visits.date", Kind.INTEGER, 0, 10),
        Column("drugs.dose", Kind.NUMERIC, 0, 5),
        Column("people.sex", Kind.BOOLEAN, 0, 1),
    ),
    Unit("person", 20),
    tables=(LinkedTable("visits", 20), LinkedTable("drugs", 6), LinkedTable("people", 1)),
)


@pytest.mark.parametrize(
    ("text", "table", "upper"),
    [
        ("count(visits)", "visits", 20),
        ("count(drugs)", "drugs", 6),
        ("count(drugs, where=drugs.dose > 2)", "drugs", 6),
        ("count(where=drugs.dose > 2)", "drugs", 6),
        ("sum(drugs.dose)", "drugs", 30),
        ("last(visits.bmi, by=visits.date)", "visits", 70),
        ("any(people.sex)", "people", 1),
    ],
)
def test_features_of_linked_tables_have_the_bounds_of_their_table(
    text: str, table: str, upper: float
) -> None:
    feature = read(text, LINKED)
    assert (feature.table, feature.column.upper) == (table, upper)


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("count()", "one table; name it"),
        ("count(people, where=drugs.dose > 2)", "one table; name it"),
        ("last(visits.bmi, by=drugs.dose)", "one table; name it"),
        ("count(nobody)", "one of the tables visits, drugs, people"),
    ],
)
def test_a_feature_reads_one_table(text: str, advice: str) -> None:
    with pytest.raises(InvalidFormula, match=advice):
        read(text, LINKED)
