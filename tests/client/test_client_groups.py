# SPDX-License-Identifier: Apache-2.0
"""Releases by group: their values by name, differences with the errors of both groups, tables and
plots of all of them.
"""

from copy import deepcopy
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

import reticent
from reticent.results.group_estimates import _holm
from reticent.results.named_test import NamedTest
from support.client.replying_server import Server, release

mpl.use("Agg")


def estimate(level: str, value: float, error: float, **more: float) -> dict[str, Any]:
    ends = [value - 2 * error, value + 2 * error]
    common = {"value": value, "standard_error": error, "confidence_level": 0.95, "n": 20_000}
    return common | {"confidence_interval": ends, "level": level} | more


def document(kind: str, groups: list[dict[str, Any]]) -> dict[str, Any]:
    query = {"kind": kind, "column": "price", "by": "zone"}
    result = {"by": "zone", "groups": deepcopy(groups), "n": 20_000}
    return release("mean") | {"query": query, "result": result}


MEANS = [
    estimate("a", 10.0, 3.0, privacy_standard_error=1.0),
    estimate("b", 14.0, 4.0, privacy_standard_error=2.0),
    estimate("<c>", 5.0, 12.0, privacy_standard_error=11.0),
]


@pytest.fixture
def found(server: Server) -> reticent.GroupEstimates:
    ds = server.dataset()
    server.always(201, document("mean", MEANS))
    answer = ds.mean("price", by="zone", epsilon=1.0)
    assert isinstance(answer, reticent.GroupEstimates)
    return answer


def test_values_have_their_groups_names(found: reticent.GroupEstimates) -> None:
    assert (found.by, found.levels, found.nobs) == ("zone", ("a", "b", "<c>"), 20_000)
    assert (found.values["b"], found.bse["b"], found.privacy_bse["b"]) == (14.0, 4.0, 2.0)
    assert found.conf_int().tolist() == [[4, 16], [6, 22], [-19, 29]]
    assert found.conf_int(0.1)[0] == pytest.approx([10 - 1.6448536 * 3, 10 + 1.6448536 * 3])


def test_differences_have_the_errors_of_both_groups(found: reticent.GroupEstimates) -> None:
    every = found.differences()
    assert every.values.to_dict() == {"b - a": 4.0, "<c> - a": -5.0, "<c> - b": -9.0}
    assert every.bse["b - a"] == pytest.approx(5.0)
    assert every.conf_int()[0] == pytest.approx([4 - 1.959964 * 5, 4 + 1.959964 * 5])
    assert found.differences("b").values.to_dict() == {"a - b": -4.0, "<c> - b": -9.0}
    assert "b - a" in repr(every)
    assert "&lt;c&gt;" in every._repr_html_()
    assert every.to_frame().loc["b - a", "bse"] == pytest.approx(5.0)
    with pytest.raises(KeyError, match="the levels are a, b, <c>"):
        found.differences("d")


def test_several_differences_at_once(found: reticent.GroupEstimates) -> None:
    """As R: ptukey(abs(d)/se*sqrt(2), 3, Inf, lower = FALSE), p.adjust(p, "holm"), qtukey."""
    every = found.differences()
    single = every.pvalues()
    assert single["b - a"] == pytest.approx(0.4237108, abs=1e-6)
    tukey = every.pvalues("tukey")
    assert tukey["b - a"] == pytest.approx(0.703015, abs=1e-5)
    assert every.pvalues("holm")["b - a"] == pytest.approx(1.0)
    assert every.pvalues("bonferroni")["b - a"] == pytest.approx(1.0)
    half = every.conf_int(adjust="tukey")[0, 1] - 4
    assert half == pytest.approx(3.314493 / 2**0.5 * 5, rel=1e-5)
    wide = every.conf_int(adjust="holm")[0, 1] - 4
    assert wide == pytest.approx(2.393980 * 5, rel=1e-5)
    assert "pvalue" in every.to_frame("tukey")
    with pytest.raises(ValueError, match="all pairs"):
        found.differences("b").pvalues("tukey")
    with pytest.raises(ValueError, match="adjust is one of"):
        every.conf_int(adjust="scheffe")


def test_holm_goes_through_p_values_from_the_smallest() -> None:
    """p.adjust(c(.01, .04, .03, .005), "holm") of R."""
    found = _holm(np.array([0.01, 0.04, 0.03, 0.005]))
    assert found.tolist() == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_an_analysis_of_variance_has_differences() -> None:
    groups = [
        {"level": k, "number": 50.0, "mean": m, "standard_deviation": 1.0, "standard_error": 0.3}
        for k, m in (("a", 1.0), ("b", 2.0), ("c", 4.0))
    ]
    query = {"kind": "anova", "column": "y", "group": "g"}
    test = NamedTest({"query": query, "result": {"groups": groups}})
    assert test.differences().values.to_dict() == {"b - a": 1.0, "c - a": 3.0, "c - b": 2.0}
    with pytest.raises(ValueError, match="of an anova"):
        NamedTest({"query": {"kind": "t_test"}, "result": {}}).differences()


def test_a_table_and_a_plot_hold_every_group(found: reticent.GroupEstimates) -> None:
    lines = [line.split() for line in str(found.summary()).splitlines()]
    assert ["b", "14.0000", "4.0000", "2.0000", "6.0000", "22.0000"] in lines
    assert found.to_frame().loc["b"].tolist() == [14.0, 4.0, 2.0, 6.0, 22.0]
    axes = found.plot()
    assert [text.get_text() for text in axes.get_yticklabels()] == ["a", "b", "<c>"]
    assert axes.get_ylabel() == "zone"


def test_of_counts_all_of_the_error_is_noise() -> None:
    counts = reticent.GroupEstimates(document("count", [estimate("a", 7.0, 2.0)]))
    assert counts.privacy_bse["a"] == 2.0
    assert counts.differences().values.names == ()


def histogram(level: str, values: list[float]) -> dict[str, Any]:
    ends = [[max(0.0, v - 2), v + 2] for v in values]
    common = {"levels": ["1", "2"], "standard_error": 1.0, "confidence_level": 0.95, "n": 20_000}
    return common | {"values": values, "confidence_intervals": ends, "level": level}


def test_histograms_of_groups(server: Server) -> None:
    ds = server.dataset()
    groups = [histogram("a", [5.0, -1.0]), histogram("b", [2.0, 30.0])]
    server.always(201, document("histogram", groups))
    found = ds.histogram("grade", by="zone", epsilon=1.0)
    assert isinstance(found, reticent.GroupHistograms)
    assert np.array_equal(found.values, [[5, -1], [2, 30]])
    assert found.groups["b"].counts["2"] == 30.0
    assert (found.labels, found.bse, found.nobs) == (("1", "2"), 1.0, 20_000)
    assert found.conf_int()[1, 1] == pytest.approx([30 - 1.959964, 30 + 1.959964])
    assert found.to_frame().loc[("b", "2"), "count"] == 30.0
    assert ["b", "2.0000", "30.0000"] in [
        line.split() for line in str(found.summary()).splitlines()
    ]
    axes = found.plot()
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a", "b"]


def test_a_document_without_groups_is_refused(server: Server) -> None:
    ds = server.dataset()
    broken = document("mean", MEANS)
    del broken["result"]["groups"][1]["standard_error"]
    server.always(201, broken)
    with pytest.raises(reticent.UnexpectedReply):
        ds.mean("price", by="zone", epsilon=1.0)
