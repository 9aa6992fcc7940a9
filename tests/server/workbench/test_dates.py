# SPDX-License-Identifier: Apache-2.0
"""Days that a release tells of a column of dates are dates on a page and in a file; other numbers
stay what they are.
"""

from typing import Any

import pytest

from reticent_server.web.dates import dated
from reticent_server.web.tables import shown

DAY = 14378.4  # 2009-05-14, and a part of the day


def facts(query: dict[str, Any], result: Any) -> dict[str, str]:
    return dict(shown(dated(query, result, {"sold"})).facts)


def test_a_median_is_a_date_and_its_number_of_records_is_not() -> None:
    result = {"value": DAY, "n": 14378, "bin": [DAY, DAY + 2]}
    found = facts({"kind": "median", "column": "sold"}, result)
    assert found == {"value": "2009-05-14", "n": "14,378", "bin": "2009-05-14 to 2009-05-16"}
    assert facts({"kind": "median", "column": "price"}, result)["value"] == "14,378"


def test_quantiles_by_group_are_dates() -> None:
    groups = [{"level": "a", "probabilities": [0.5], "values": [DAY]}]
    (table,) = shown(
        dated({"kind": "quantiles", "column": "sold"}, {"groups": groups}, {"sold"})
    ).tables
    assert [row.cells for row in table.rows] == [("2009-05-14",)]


def test_a_histogram_counts_in_bins_of_dates() -> None:
    result = {"edges": [DAY, DAY + 1], "values": [7.0]}
    (table,) = shown(dated({"kind": "histogram", "column": "sold"}, result, {"sold"})).tables
    assert [(row.name, row.cells) for row in table.rows] == [("2009-05-14 to 2009-05-15", ("7",))]


def test_of_a_description_only_the_column_of_dates_has_them() -> None:
    group = {"level": "all", "mean": {"value": DAY}, "standard_deviation": {"value": 90.0}}
    columns = [{"column": name, "groups": [group]} for name in ("sold", "price")]
    (table,) = shown(dated({"kind": "describe"}, {"columns": columns}, {"sold"})).tables
    assert [row.cells for row in table.rows] == [("2009-05-14", "90"), ("14,378", "90")]


@pytest.mark.parametrize("value", [float("inf"), 1e300, None])
def test_what_is_no_day_stays(value: Any) -> None:
    assert dated({"kind": "median", "column": "sold"}, {"value": value}, {"sold"}) == {
        "value": value
    }
