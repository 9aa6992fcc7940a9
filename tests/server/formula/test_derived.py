# SPDX-License-Identifier: Apache-2.0
"""Derived columns: what their texts mean, their bounds, and their values in a loaded table."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reticent_server.catalog.json_values import schema_from_json, schema_to_json
from reticent_server.catalog.schema_file import parse_schema
from reticent_server.domain.dates import date_days
from reticent_server.domain.derived import DerivedText
from reticent_server.domain.schema import Column, Recode, Schema
from reticent_server.domain.schema import ColumnKind as Kind
from reticent_server.errors import CuratorError, InvalidFormula
from reticent_server.formula.derived import with_derived
from reticent_server.numerics.derive import derived_values
from support.databases.vaults import Vault
from support.seeds import seeded

COLUMNS = (
    Column("x", Kind.NUMERIC, -2, 5, missing=("NA",)),
    Column("income", Kind.NUMERIC, 0, 500_000),
    Column("k", Kind.INTEGER, 1, 9),
    Column("b", Kind.BOOLEAN, 0, 1),
    Column("g", Kind.CATEGORICAL, 0, 1, ("u", "v")),
    Column("sold", Kind.INTEGER, date_days("2013-11-01"), date_days("2015-02-10"),
        recode=Recode(date="%Y-%m-%d")),
)  # fmt: skip
RNG = seeded(3)
ROWS = 4000
VALUES: dict[str, Any] = {
    "x": RNG.uniform(-2, 5, ROWS),
    "income": RNG.uniform(0, 500_000, ROWS),
    "k": RNG.integers(1, 10, ROWS) * 1.0,
    "b": RNG.integers(0, 2, ROWS) * 1.0,
    "sold": RNG.integers(int(COLUMNS[5].lower), int(COLUMNS[5].upper) + 1, ROWS) * 1.0,
}
for name, cells in VALUES.items():
    bounds = next(c for c in COLUMNS if c.name == name)
    cells[:2] = bounds.lower, bounds.upper


def derived(text: str, lower: float | None = None, upper: float | None = None) -> Column:
    schema = Schema(COLUMNS, derived=(DerivedText("new", text, lower, upper),))
    return with_derived(schema).columns[-1]


V = VALUES
YEARS = (V["sold"].astype(int).astype("datetime64[D]").astype("datetime64[Y]").astype(int)) + 1970
MONTHS = (
    V["sold"].astype(int).astype("datetime64[D]").astype("datetime64[M]").astype(int) % 12 + 1.0
)


@pytest.mark.parametrize(
    ("text", "expected", "kind"),
    [
        ("income / 1000", V["income"] / 1000, Kind.NUMERIC),
        ("x + 2 * k - b", V["x"] + 2 * V["k"] - V["b"], Kind.NUMERIC),
        ("k - b * 3 - 1", V["k"] - V["b"] * 3 - 1, Kind.INTEGER),
        ("(k - b) * 3", (V["k"] - V["b"]) * 3, Kind.INTEGER),
        ("k / 2 / b2", None, None),
        ("k / 2 * 3", V["k"] / 2 * 3, Kind.NUMERIC),
        ("-x**2", -(V["x"] ** 2), Kind.NUMERIC),
        ("2 - -k", 2 + V["k"], Kind.INTEGER),
        ("x**3 + x**2", V["x"] ** 3 + V["x"] ** 2, Kind.NUMERIC),
        ("log1p(income) * k**-1.5", np.log1p(V["income"]) * V["k"] ** -1.5, Kind.NUMERIC),
        ("log(k) - log(k + 1)", np.log(V["k"]) - np.log(V["k"] + 1), Kind.NUMERIC),
        ("year(sold) - 2000", YEARS - 2000.0, Kind.INTEGER),
        ('days_since(sold, "2013-11-01") / 365.25', (V["sold"] - V["sold"].min()) / 365.25,
            Kind.NUMERIC),
        ("month(sold)", MONTHS, Kind.INTEGER),
        ("exp(x) / (k + 1)", np.exp(V["x"]) / (V["k"] + 1), Kind.NUMERIC),
    ],
)  # fmt: skip
def test_values_are_those_of_the_text_and_within_its_bounds(
    text: str, expected: Any, kind: Any
) -> None:
    if expected is None:
        with pytest.raises(InvalidFormula, match="position 9 of the text of the derived column"):
            derived(text)
        return
    column = derived(text)
    assert column.recode.derived is not None
    values = derived_values(column.recode.derived, VALUES)
    np.testing.assert_allclose(values, expected, rtol=1e-14, atol=1e-14)
    assert column.lower <= values.min()
    assert values.max() <= column.upper
    assert column.kind is kind
    assert column.source == ""


@pytest.mark.parametrize(
    ("text", "lower", "upper"),
    [
        ("income / 1000", 0, 500),
        ("x * x", -10, 25),
        ("x**2", 0, 25),
        ("-x", -5, 2),
        ("k / (x + 3)", 1 / 8, 9),
        ("10 / k - x", 10 / 9 - 5, 12),
        ("k * b - x", -5, 11),
    ],
)
def test_bounds_are_the_interval_s(text: str, lower: float, upper: float) -> None:
    column = derived(text)
    assert (column.lower, column.upper) == pytest.approx((lower, upper), rel=1e-15)


def test_a_curator_may_narrow_bounds_and_not_widen_them() -> None:
    narrow = derived("income / 1000", 10, 250)
    assert (narrow.lower, narrow.upper) == (10, 250)
    for ends in ((-1, None), (None, 501), (300, 200), (None, 0)):
        with pytest.raises(InvalidFormula, match=r"The derived column new lies in \[0, 500\]"):
            derived("income / 1000", *ends)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "secret + 1",
            "position 1 of the text of the derived column new: name a column that stands under",
        ),
        ("g + 1", "g is categorical; use a numeric column"),
        ("x /", "position 4 of .*: name a column that stands"),
        ("k / x", r"what stands below '/' lies in \[-2, 5\], which holds 0"),
        ("log(x)", "is not defined on the declared bounds: .* lies in"),
        ("system(x)", "use one of the functions log, log1p"),
        ("x y", "join columns and numbers by"),
        ("1 + 2", "name at least one column"),
        ("year(k)", "k is not a date column"),
        ("exp(income)", "is not defined on the declared bounds"),
        ("x < 2", "join columns and numbers by"),
        ("income**20", "is too large on the declared bounds"),
        ("(" * 30 + "x" + ")" * 30, "nest at most 20"),
        ("k - k + 1 - 1" * 900, "too long"),
    ],
)
def test_refusals_say_what_to_change(text: str, sentence: str) -> None:
    with pytest.raises(InvalidFormula, match=sentence):
        derived(text)


DECLARED: Any = {
    "columns": {
        "x": {"kind": "numeric", "lower": 0, "upper": 10, "missing": ["NA"]},
        "k": {"kind": "integer", "lower": 1, "upper": 9},
    },
    "derive": {"half": "x / 2", "twice": {"formula": "k * 2", "lower": 4}},
}


def test_a_loaded_table_holds_them(tmp_path: Path) -> None:
    """From stored, clipped values; missing where an input is; the narrower bounds clip and are
    counted.
    """
    schema = with_derived(parse_schema(DECLARED))
    assert schema_from_json(schema_to_json(schema)) == schema
    file = tmp_path / "rows.csv"
    file.write_text("k,x\n1,4\n5,NA\n20,30\n")
    vault = Vault(f"sqlite:///{tmp_path}/vault.db")
    loaded = vault.load(file, schema)
    stored = vault.read(loaded.source, ["half", "twice"])
    assert stored.column("half").to_pylist() == [2.0, 0.0, 5.0]
    assert stored.column("twice").to_pylist() == [4.0, 10.0, 18.0]
    assert loaded.clipped == {"x": 1, "k": 1, "half": 0, "twice": 1}
    half = schema.column("half")
    assert half is not None
    assert half.may_be_missing
    mask = next(c.mask for c in loaded.source.columns if c.name == "half")
    assert mask is not None
    file.write_text("k,x\n1,4\n")
    with pytest.raises(CuratorError, match=r"twice: a derived value is outside its bounds"):
        vault.load(file, schema, strict=True)
    with pytest.raises(CuratorError, match="have not been read"):
        vault.load(file, parse_schema(DECLARED))


@pytest.mark.parametrize(
    ("declared", "sentence"),
    [
        ([], "`derive` must be a mapping"),
        ({"a b": "x"}, "'a b' cannot be a column's name"),
        ({"x": "k"}, "Column x: it is declared under `columns`, too"),
        ({"z": 3}, "Column z: write a text, or {formula"),
        ({"z": {"formula": "x", "kind": "numeric"}}, "Column z: write a text, or {formula"),
        ({"z": ""}, "Column z: formula must be a quoted text"),
        ({"z": {"formula": "x", "lower": "a"}}, "Column z: lower must be a number"),
    ],
)
def test_a_bad_declaration_is_refused_by_name(declared: Any, sentence: str) -> None:
    with pytest.raises(CuratorError, match=sentence):
        parse_schema(DECLARED | {"derive": declared})
