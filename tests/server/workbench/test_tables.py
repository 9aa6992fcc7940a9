# SPDX-License-Identifier: Apache-2.0
"""Results as tables: what stands beside each other, what is drawn, and how much of a width is privacy's."""

import pytest

from reticent_server.web.tables import shown

FIT = {
    "terms": ["Intercept", "x"],
    "coefficients": [1.0, -2.0],
    "standard_errors": [0.5, 1.0],
    "confidence_intervals": [[0.0, 2.0], [-4.0, 0.0]],
    "p_values": [0.04, 0.0001],
    "privacy_standard_errors": [0.0, 0.6],
    "covariance": [[1.0, 2.0], [2.0, 5.0]],
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
    assert dict(result.details).keys() == {"covariance"}
    assert "covariance" not in table.heads


def test_an_estimate_has_its_interval_in_a_line() -> None:
    result = shown({"value": 4.0, "confidence_interval": [-1.0, 9.0], "n": 10})
    assert ("confidence interval", "\N{MINUS SIGN}1 to 9") in result.facts
    assert result.tables == ()


def test_what_is_not_estimable_has_no_interval() -> None:
    table = shown(
        {
            "terms": ["x", "z"],
            "coefficients": [None, 1.0],
            "confidence_intervals": [[None, None], [0.0, 2.0]],
        }
    ).tables[0]
    assert table.rows[0].cells[0] == "–"
    assert table.rows[0].mark is None


def test_records_are_rows() -> None:
    (table,) = shown(
        {"groups": [{"level": "a", "value": 1.0}, {"level": "b", "value": 2.0}]}
    ).tables
    assert (table.title, [row.name for row in table.rows]) == ("groups", ["a", "b"])
