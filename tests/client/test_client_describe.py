# SPDX-License-Identifier: Apache-2.0
"""Descriptions in the client: the table, its texts, the tidy frame and the histograms say what was
released.
"""

from copy import deepcopy
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

import reticent
from reticent.results.group_comparisons import comparison
from support.client.replying_server import Server, release

mpl.use("Agg")


def figure(value: float, low: float, high: float) -> dict[str, Any]:
    return {"value": value, "confidence_interval": [low, high]}


def numbers(level: str, mean: float) -> dict[str, Any]:
    return {
        "level": level,
        "number": 100.0,
        "counts": [60.0, -4.0, 44.0],
        "count_standard_error": 5.0,
        "missing": figure(0.25, 0.2, 0.3),
        "mean": figure(mean, mean - 1, mean + 1) | {"standard_error": 0.5},
        "standard_deviation": figure(2.5, 2.0, 3.0),
        "quartiles": [figure(q, q - 1, q + 1) for q in (1.0, 4.0, 9.0)],
    }


def levels(level: str, share: float) -> dict[str, Any]:
    return {
        "level": level,
        "number": 100.0,
        "counts": [100 * share, -1.0],
        "count_standard_error": 5.0,
        "shares": [figure(share, 0.0, 1.0), figure(1 - share, 0.0, 1.0)],
    }


GROUPS = ("all", "0", "1")
RESULT = {
    "by": "zone",
    "sizes": [
        {"level": k, "number": n, "standard_error": 1.0, "confidence_interval": [n - 2, n + 2]}
        for k, n in zip(GROUPS, (1500.0, 1501.0, -1.0), strict=True)
    ],
    "columns": [
        {
            "column": "price",
            "edges": [0.0, 1.0, 2.0, 4.0],
            "clipped": [0.0, 4.0],
            "groups": [numbers(k, m) for k, m in zip(GROUPS, (5.0, 6.0, 7.0), strict=True)],
        },
        {
            "column": "a_b",
            "levels": ["<x>", "y|z"],
            "groups": [levels(k, s) for k, s in zip(GROUPS, (0.5, 0.25, 0.75), strict=True)],
        },
    ],
    "confidence_level": 0.95,
    "n": 20_000,
}


@pytest.fixture
def about(server: Server) -> reticent.Description:
    return described(server, RESULT)


def described(server: Server, result: dict[str, Any]) -> reticent.Description:
    query = {"kind": "describe", "columns": ["price", "a_b"], "by": "zone"}
    ds = server.dataset()
    server.always(201, release("mean") | {"query": query, "result": result})
    found = ds.describe(["price", "a_b"], by="zone", epsilon=1.0)
    assert isinstance(found, reticent.Description)
    return found


def test_its_parts_have_names(about: reticent.Description) -> None:
    assert (about.by, about.groups, about.columns) == ("zone", GROUPS, ("price", "a_b"))
    assert about.sizes == {"all": 1500.0, "0": 1501.0, "1": -1.0}
    assert about.nobs == 20_000


def test_the_table_is_what_journals_print(about: reticent.Description) -> None:
    table = about.table()
    assert table.header == ("zone", *GROUPS)
    rows = {row[0]: row[1:] for row in table.rows}
    assert rows["Records"] == ("1,500", "1,501", "0")
    assert rows["price, mean (SD)"] == tuple(f"{m}.0000 (2.5000)" for m in (5, 6, 7))
    assert rows["price, median"][0] == "4.0000 [1.0000, 9.0000]"
    assert rows["price, missing"][0] == "25.0 %"
    assert rows["a_b = <x>"] == ("50 (50.0 %)", "25 (25.0 %)", "75 (75.0 %)")
    assert rows["a_b = y|z"][0] == "0 (50.0 %)"
    assert "price, mean (SD)" in str(about.summary())
    assert "&lt;x&gt;" in table.html()
    assert r"a\_b" in table.latex()
    assert r"25.0 \%" in table.latex()
    assert r"y\|z" in table.markdown()


def test_a_deviation_that_noise_hides_is_a_dash(server: Server) -> None:
    columns: Any = deepcopy(RESULT["columns"])
    for group in columns[0]["groups"]:
        group["standard_deviation"] = {"value": None, "confidence_interval": [0.0, 0.2]}
    about = described(server, RESULT | {"columns": columns})
    about.check()
    rows = {row[0]: row[1:] for row in about.tbl_summary().rows}
    assert rows["price, mean (SD)"][:3] == tuple(f"{m}.0000 (–)" for m in (5, 6, 7))
    assert rows["price, mean (SD)"][3] == "–"
    rows = {row[0]: row[1:] for row in about.table(intervals=True).rows}
    assert rows["price, standard deviation"][0] == "– [0.0000, 0.2000]"
    assert np.isnan(
        about.to_frame().set_index(["column", "figure", "group"]).value["price"].iloc[1]
    )


def test_a_bin_of_one_number_is_drawn_with_the_next(server: Server) -> None:
    """Its edges are the same number twice; a density over no width would be infinite."""
    columns: Any = deepcopy(RESULT["columns"])
    columns[0]["edges"] = [-1.0, 0.0, 0.0, 4.0]
    about = described(server, RESULT | {"columns": columns})
    axes = about.plot("price")
    (first, _) = (patch.get_data() for patch in axes.patches)
    assert first.edges.tolist() == [-1.0, 0.0, 4.0]
    assert first.values.tolist() == pytest.approx([0.6, 0.1])


def test_intervals_are_in_the_table_where_they_are_asked_for(about: reticent.Description) -> None:
    rows = {row[0]: row[1:] for row in about.table(intervals=True).rows}
    column = about.columns[0]
    called = about.table(labels={column: "What it is called"})
    assert any(row[0].startswith("What it is called, ") for row in called.rows)
    assert not any(row[0].startswith(f"{column}, ") for row in called.rows)
    assert rows["price, mean"][1] == "6.0000 [5.0000, 7.0000]"
    assert rows["price, 75%"][0] == "9.0000 [8.0000, 10.0000]"
    assert rows["a_b, <x>"][2] == "0.7500 [0.0000, 1.0000]"


def test_a_summary_compares_the_groups(about: reticent.Description) -> None:
    """By hand: d = 1/√(mean of 2.5²), its error of √(0.5² + 0.5²)/2.5 and of s̄²; Welch's
    χ² is 2."""
    price, level = about.comparisons()
    assert price.difference.value == pytest.approx(0.4)
    wide = np.hypot(*[(3.0**2 - 2.5**2) / 1.959964] * 2) / 2
    spread = np.hypot(np.sqrt(0.5) / 2.5, 0.4 * wide / (2 * 2.5**2))
    assert price.difference.bse == pytest.approx(spread, rel=1e-6)
    assert (price.statistic, price.df) == (pytest.approx(2.0), 1)
    assert price.pvalue == pytest.approx(0.1572992, abs=1e-6)
    assert np.isnan(level.difference.value)  # the interval of each share is [0, 1]
    table = about.tbl_summary()
    assert table.header == ("zone", *GROUPS, "SMD", "p")
    rows = {row[0]: row[-2:] for row in table.rows}
    assert rows["price, mean (SD)"][1] == "0.157"
    assert rows["price, mean (SD)"][0].startswith("0.40 [")
    assert rows["price, median"] == ("", "")
    assert rows["a_b = <x>"] == ("–", "–")
    assert "SMD" in table.latex()
    assert list(about.comparisons_frame().index) == ["price", "a_b"]


def test_shares_are_compared_as_wald_does() -> None:
    """Two levels, 900 + 100 and 800 + 200 records without noise: d is −0.1/√((.09 + .16)/2), and
    the test that of a table of proportions with pooled variances.
    """

    def group(counts: list[float]) -> dict[str, Any]:
        N = sum(counts)
        shares = [
            figure(c / N, c / N - 0.1, c / N + 0.1)
            | {"standard_error": (c / N * (1 - c / N) / N) ** 0.5}
            for c in counts
        ]
        return {
            "level": "x",
            "number": N,
            "counts": counts,
            "count_standard_error": 0.0,
            "shares": shares,
        }

    groups = [group([1700.0, 300.0]), group([900.0, 100.0]), group([800.0, 200.0])]
    found = comparison({"column": "b", "levels": ["n", "y"], "groups": groups})
    assert found.difference.value == pytest.approx(-0.1 / 0.125**0.5)
    assert found.statistic == pytest.approx(0.01 / (2 * 0.85 * 0.15 / 1000))
    moved = 1e-6
    up = comparison(
        {
            "column": "b",
            "levels": ["n", "y"],
            "groups": [groups[0], groups[1], group([800 + 1000 * moved, 200 - 1000 * moved])],
        }
    )
    slope = (up.difference.value - found.difference.value) / moved
    other = comparison(
        {
            "column": "b",
            "levels": ["n", "y"],
            "groups": [groups[0], group([900 + 1000 * moved, 100 - 1000 * moved]), groups[2]],
        }
    )
    first = (other.difference.value - found.difference.value) / moved
    errors = (0.09 / 1000) ** 0.5, (0.16 / 1000) ** 0.5
    assert found.difference.bse == pytest.approx(
        np.hypot(slope * errors[1], first * errors[0]), rel=1e-4
    )
    noisy = [g | {"count_standard_error": 30.0} for g in groups]
    assert (
        comparison({"column": "b", "levels": ["n", "y"], "groups": noisy}).statistic
        < found.statistic / 2
    )


def test_the_frame_is_tidy(about: reticent.Description) -> None:
    frame = about.to_frame()
    assert list(frame.columns) == ["column", "figure", "group", "value", "lower", "upper"]
    assert len(frame) == 3 * 6 + 3 * 2
    row = frame[(frame.column == "price") & (frame.figure == "50%") & (frame.group == "1")]
    assert row[["value", "lower", "upper"]].to_numpy().tolist() == [[4.0, 3.0, 5.0]]


def test_histograms_are_shares_over_their_bins(about: reticent.Description) -> None:
    axes = about.plot("price")
    heights = axes.patches[0].get_data().values
    assert heights.tolist() == pytest.approx([0.6, 0.0, 0.22])
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["0", "1"]
    bars = about.plot("a_b", axes).patches
    assert sorted(bar.get_height() for bar in bars if hasattr(bar, "get_height")) == pytest.approx(
        [0, 0, 0.25, 0.75]
    )
    figure = about.plot()
    assert [a.get_xlabel() for a in figure.axes] == ["price", "a_b"]
    with pytest.raises(KeyError, match="the columns are price, a_b"):
        about.plot("zone")
    assert np.all(np.isfinite(heights))
