# SPDX-License-Identifier: Apache-2.0
"""Results as tables: what stands beside each other, what is drawn, and how much of a width is
privacy's.
"""

import pytest

from reticent_server.web.layout import laid_out
from reticent_server.web.tables import shown

FIT = {
    "terms": ["Intercept", "x"],
    "coefficients": [1.0, -2.0],
    "standard_errors": [0.5, 1.0],
    "confidence_intervals": [[0.0, 2.0], [-4.0, 0.0]],
    "p_values": [0.04, 0.0001],
    "privacy_standard_errors": [0.0, 0.6],
    "covariance": [[1.0, 2.0], [2.0, 5.0]],
    "warnings": ["One sentence.", "And another one."],
    "n": 10,
}


def test_a_fit_of_two_terms_is_a_table_of_two_rows() -> None:
    result = shown(FIT)
    (table,) = [t for t in result.tables if "coefficients" in t.heads]
    assert [row.name for row in table.rows] == ["Intercept", "x"]
    assert "< 0.001" in table.rows[1].cells
    assert table.rows[1].share == pytest.approx(0.2)
    assert table.rows[0].mark is None
    mark = table.rows[1].mark
    assert mark is not None
    assert mark.low < mark.bare_low < mark.at < mark.bare_high < mark.high
    assert mark.bare_high - mark.bare_low == pytest.approx(0.8 * (mark.high - mark.low))
    assert ("n", "10") in result.facts
    assert not {"covariance", "warnings"} & {*table.heads}
    assert result.notes == ("One sentence.", "And another one.")


def test_a_matrix_is_a_table_with_names_at_both_sides_that_is_folded_away() -> None:
    (table,) = [t for t in shown(FIT).tables if t.aside]
    assert (table.title, table.heads) == ("covariance", ("terms", "Intercept", "x"))
    assert [row.cells for row in table.rows] == [("1", "2"), ("2", "5")]


def test_an_estimate_has_its_interval_in_a_line() -> None:
    result = shown({"value": 4.0, "confidence_interval": [-1.0, 9.0], "n": 10})
    assert ("confidence interval", "\N{MINUS SIGN}1 to 9") in result.facts
    assert result.tables == ()


def test_what_is_not_identifiable_says_so_and_has_no_error() -> None:
    table = shown(
        {
            "terms": ["x", "z"],
            "coefficients": [1550.0, 1.0],
            "standard_errors": [94.0, 0.5],
            "privacy_standard_errors": [90.0, 0.1],
            "confidence_intervals": [[1364.0, 1734.0], [0.0, 2.0]],
            "p_values": [0.0, 0.05],
            "estimable": [False, True],
        }
    ).tables[0]
    assert table.rows[0].cells == ("1,550", "–", "–", "–", "–", "no")
    assert table.rows[1].cells == ("1", "0.5", "0.1", "0 to 2", "0.050", "yes")
    assert table.rows[0].mark is None
    assert table.rows[0].share is None


def test_a_test_that_is_not_identifiable_has_no_p_value() -> None:
    facts = dict(shown({"statistic": 3.0, "p_value": 0.01, "estimable": False}).facts)
    assert facts == {"statistic": "–", "p value": "–", "identifiable": "no"}


def test_records_are_rows() -> None:
    (table,) = shown(
        {"groups": [{"level": "a", "value": 1.0}, {"level": "b", "value": 2.0}]}
    ).tables
    assert (table.title, [row.name for row in table.rows]) == ("groups", ["a", "b"])


def test_fits_by_group_and_quantile_stand_below_each_other() -> None:
    fits = [{"tau": tau, "terms": ["x"], "coefficients": [tau]} for tau in (0.25, 0.75)]
    result = shown({"groups": [{"level": level, "fits": fits} for level in "ab"], "n": 10})
    (table,) = result.tables
    assert table.heads == ("level", "tau", "terms", "coefficients")
    assert [row.name for row in table.rows] == [
        "a · 0.25 · x",
        "a · 0.75 · x",
        "b · 0.25 · x",
        "b · 0.75 · x",
    ]
    assert [row.cells for row in table.rows] == [("0.25",), ("0.75",)] * 2


def test_counts_of_two_columns_stand_crosswise_and_of_three_below_each_other() -> None:
    two = {"columns": ["g", "b"], "levels": [["x", "y"], ["0", "1"]], "values": [[1, 2], [3, 4]]}
    (table,) = shown(two).tables
    assert (table.title, table.heads) == ("values · g by b", ("g", "0", "1"))
    assert [row.cells for row in table.rows] == [("1", "2"), ("3", "4")]
    three = {"columns": ["a", "b", "c"], "levels": [["x"], ["y"], ["0", "1"]], "values": [[[5, 6]]]}
    (table,) = shown(three).tables
    assert [(row.name, row.cells) for row in table.rows] == [
        ("x · y · 0", ("5",)),
        ("x · y · 1", ("6",)),
    ]


def test_a_grid_is_never_a_column_of_what_terms_name() -> None:
    """Cuts and slopes of one number are of different things; the hazards inside are of the cuts."""
    fit = {
        "terms": ["x", "z"],
        "coefficients": [1.0, 2.0],
        "cuts": [3.0, 9.0],
        "baseline": {"hazards": [0.1, 0.2]},
    }
    tables = {table.title or ", ".join(table.columns): table for table in laid_out(fit).tables}
    assert list(tables) == ["coefficients", "cuts", "baseline"]
    assert tables["baseline"].labels == (("cuts", (3.0, 9.0)),)
    assert tables["cuts"].labels == (("no.", (1, 2)),)


def test_what_all_groups_have_alike_is_said_once() -> None:
    groups = [{"level": name, "value": 1.0, "n": 10, "confidence_level": 0.95} for name in "ab"]
    laid = laid_out({"groups": groups, "n": 10})
    assert laid.facts == {"n": 10, "groups: confidence level": 0.95}
    assert [*laid.tables[0].columns] == ["value"]


def test_rows_that_a_page_leaves_out_are_counted() -> None:
    (table,) = shown({"values": [1.0, 2.0, 3.0]}, longest=2).tables
    assert (len(table.rows), table.left_out) == (2, 1)
