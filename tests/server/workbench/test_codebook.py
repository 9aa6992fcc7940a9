# SPDX-License-Identifier: Apache-2.0
"""What the codebook draws of a profile."""

import pytest

from reticent_server.domain.facts import ColumnProfile, DatasetFacts, Profile
from reticent_server.domain.schema import WEIGHT, Column, ColumnKind, Schema
from reticent_server.web.filters import coded
from reticent_server.workbench.columns import HEIGHT, SPIKE, WIDTH, CodebookRow, codebook

PROBABILITIES = (0.05, 0.25, 0.5, 0.75, 0.95)


def row(kind: ColumnKind, known: ColumnProfile, levels: tuple[str, ...] = ()) -> CodebookRow:
    column = Column("x", kind, 0.0, 100.0, levels)
    facts = DatasetFacts("d", "d", 1, "v", 100, Schema((column,)), Profile({"x": known}))
    return codebook(facts)[0]


def test_a_value_that_many_share_is_the_highest_bar() -> None:
    known = ColumnProfile((0.0, 0.0, 0.0, 0.0, 80.0), probabilities=PROBABILITIES)
    bars = row(ColumnKind.NUMERIC, known).bars
    spike, rest = bars
    assert (spike.x, spike.width, spike.height) == (0.0, SPIKE, HEIGHT)
    assert rest.width == pytest.approx(WIDTH)
    assert rest.height < HEIGHT / 10
    top = ColumnProfile((0.0, 40.0, 80.0, 80.0, 80.0), probabilities=PROBABILITIES)
    bars = row(ColumnKind.NUMERIC, top).bars
    assert bars[-1].x + bars[-1].width == pytest.approx(WIDTH)
    assert bars[-1].height == HEIGHT


def test_counts_are_of_the_values_that_they_are_of() -> None:
    ages = Column("age", ColumnKind.INTEGER, 17.0, 90.0)
    assert ColumnProfile(counts=(3.0, 4.0), first=17.0).counted(ages) == {"17": 3.0, "18": 4.0}
    glad = Column("glad", ColumnKind.BOOLEAN, 0.0, 1.0)
    assert ColumnProfile(counts=(3.0, 4.0)).counted(glad) == {"0": 3.0, "1": 4.0}
    town = Column("town", ColumnKind.CATEGORICAL, 0.0, 1.0, ("a", "b"))
    assert ColumnProfile(counts=(3.0, 4.0)).counted(town) == {"a": 3.0, "b": 4.0}
    assert ColumnProfile().counted(ages) == {}


def test_a_weight_says_that_it_is_one() -> None:
    columns = (
        Column("x", ColumnKind.NUMERIC, 0.0, 1.0),
        Column("w", ColumnKind.NUMERIC, 0.5, 40.0, role=WEIGHT),
    )
    facts = DatasetFacts("d", "d", 1, "v", 100, Schema(columns), None)
    assert [row.role for row in codebook(facts)] == ["", "weight"]


def test_code_in_a_docstring_is_code_and_its_markup_is_text() -> None:
    assert coded("where `x < 1` & so") == "where <code>x &lt; 1</code> &amp; so"
    assert coded("plain") == "plain"


def test_quantiles_are_of_the_probabilities_that_they_are_of() -> None:
    """A wide column has a median alone, which is no 5 % quantile."""
    assert ColumnProfile((7.0,), probabilities=(0.5,)).known_quantiles() == {0.5: 7.0}
    assert ColumnProfile().known_quantiles() == {}


def test_a_label_stands_beside_the_name() -> None:
    columns = (Column("x", ColumnKind.NUMERIC, 0.0, 1.0, label="Income per year"),)
    facts = DatasetFacts("d", "d", 1, "v", 100, Schema(columns), None)
    assert [row.label for row in codebook(facts)] == ["Income per year"]
