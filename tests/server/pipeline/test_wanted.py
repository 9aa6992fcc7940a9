# SPDX-License-Identifier: Apache-2.0
"""The least ε for intervals of a wanted width: found by plans, free, and the plan that is then made
keeps to it.
"""

from math import inf
from typing import Any

import pytest
from pydantic import ValidationError

from reticent_server.api.schemas_plan import PlanBody
from reticent_server.domain.precision import ForecastPrecision, from_ratios, single
from reticent_server.errors import InvalidQuery
from reticent_server.pipeline.profile import release_profile
from reticent_server.pipeline.services import Services
from reticent_server.pipeline.wanted import Wanted
from reticent_server.web.validation import explained
from support.installations.small import Api, Installation
from support.kinds.examples import FIELDS

WITHOUT_WIDTHS = {
    "binned_residuals", "cumulative_incidence", "depth_median", "describe", "kruskal", "ks_test",
    "log_rank", "mann_whitney",
    "proportion_test", "survival_curve",
}  # fmt: skip
"""Kinds whose plan forecasts the noise of counts or scores, which is no width of what is
released.
"""


@pytest.fixture
def api(services: Services, installation: Installation) -> Api:
    release_profile(services, "people", epsilon=50.0)
    return Api(services, installation.keys["ana"])


def planned(api: Api, query: dict[str, Any], **more: Any) -> Any:
    body = {"dataset": "people", "query": query} | more
    reply = api.post("/v1/plans", body)
    assert reply.status_code == 200, reply.text
    return reply.json()


@pytest.mark.slow
def test_every_kind_says_its_widths_or_that_it_has_none(api: Api) -> None:
    for kind, fields in FIELDS.items():
        precision = planned(api, {"kind": kind} | fields, privacy={"epsilon": 5.0})["precision"]
        assert (precision is None) == (kind in WITHOUT_WIDTHS), kind


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("query", "ratio"),
    [
        ({"kind": "mean", "column": "y"}, 1.25),
        ({"kind": "median", "column": "y"}, 1.5),
        ({"kind": "linear_regression", "formula": "y ~ x"}, 1.25),
        ({"kind": "linear_regression", "formula": "y ~ x"}, {"x": 1.1}),
    ],
)
def test_the_least_epsilon_for_a_ratio_is_found(api: Api, query: Any, ratio: Any) -> None:
    found = planned(api, query, wanted={"ci_ratio": ratio})
    epsilon = found["cost"]["epsilon"]
    names, ratios = found["precision"]["names"], found["precision"]["ci_ratios"]
    asked = ratio if isinstance(ratio, dict) else dict.fromkeys(names, ratio)
    reached = dict(zip(names, ratios, strict=True))
    assert all(reached[name] <= value * 1.0001 for name, value in asked.items())
    less = planned(api, query, privacy={"epsilon": epsilon / 1.1})["precision"]["ci_ratios"]
    fell_short = dict(zip(names, less, strict=True))
    assert any(fell_short[name] > value for name, value in asked.items())
    assert planned(api, query, privacy={"epsilon": epsilon})["cost"] == found["cost"]


@pytest.mark.slow
def test_the_least_epsilon_for_half_a_width_is_found(api: Api) -> None:
    found = planned(api, {"kind": "count"}, wanted={"half_width": 10.0})
    assert 9.5 < found["precision"]["half_widths"][0] <= 10.0
    named = planned(
        api,
        {"kind": "linear_regression", "formula": "y ~ x"},
        wanted={"half_width": {"x": 0.2}},
        privacy={"epsilon": 20.0},
    )
    assert named["precision"]["half_widths"][1] <= 0.2
    assert named["cost"]["epsilon"] < 20.0


REFUSED = [
    ({"kind": "count"}, {"ci_ratio": 1.2}, "about the table itself"),
    ({"kind": "depth_median", "columns": ["x", "y"]}, {"ci_ratio": 1.2}, "forecasts no interval"),
    ({"kind": "quantiles", "column": "y"}, {"half_width": 1.0}, "Give ci_ratio"),
    ({"kind": "linear_regression", "formula": "y ~ x"}, {"half_width": 1.0}, "by name"),
    ({"kind": "mean", "column": "y"}, {"ci_ratio": {"nowhere": 1.2}}, "none of the numbers"),
    ({"kind": "mean", "column": "y"}, {"half_width": 1e-3}, "the sampling error alone"),
    ({"kind": "mean", "column": "y"}, {}, "either ci_ratio or half_width"),
    ({"kind": "mean", "column": "y"}, None, "Give epsilon"),
]


@pytest.mark.sample(4)
@pytest.mark.parametrize(("query", "wanted", "sentence"), REFUSED)
def test_what_cannot_be_found_is_refused_with_what_to_do(
    api: Api, query: Any, wanted: Any, sentence: str
) -> None:
    reply = api.post("/v1/plans", {"dataset": "people", "query": query, "wanted": wanted})
    assert reply.status_code == 422
    assert sentence in reply.json()["detail"]
    assert "nowhere" not in reply.text


def test_an_epsilon_beside_it_is_the_most_that_may_be_spent(api: Api) -> None:
    body = {"dataset": "people", "query": {"kind": "mean", "column": "y"}}
    more = {"wanted": {"ci_ratio": 1.01}, "privacy": {"epsilon": 0.2}}
    reply = api.post("/v1/plans", body | more)
    assert reply.status_code == 422
    assert "largest epsilon that may be asked" in reply.json()["detail"]


@pytest.mark.parametrize("width", ["ci_ratio", "half_width"])
@pytest.mark.parametrize("query", [{"kind": "mean"}, {"kind": "sum", "weights": "k"}])
def test_without_a_profile_no_width_is_forecast(
    services: Services, installation: Installation, query: dict[str, str], width: str
) -> None:
    """The noise alone is no interval: a weighted sum's was six times as wide."""
    api = Api(services, installation.keys["ana"])
    body = {"dataset": "people", "query": query | {"column": "y"}}
    plan = api.post("/v1/plans", body | {"privacy": {"epsilon": 1.0}}).json()
    assert plan["precision"]["half_widths"] == plan["precision"]["ci_ratios"] == [None]
    reply = api.post("/v1/plans", body | {"wanted": {width: 1.2}})
    assert reply.status_code == 422
    assert "no profile" in reply.json()["detail"]


def test_room_for_noise() -> None:
    one = single("mean", 3.0, 4.0)
    assert one.ci_ratios == (1.25,)
    assert one.half_widths == (pytest.approx(9.8, abs=0.01),)
    assert Wanted(ci_ratio=1.25).excess(one) == pytest.approx(1.0)
    assert Wanted(half_width=1.959963984540054 * 5).excess(one) == pytest.approx(1.0)
    assert Wanted(half_width=7.8).excess(one) == inf
    two = from_ratios(("a", "b"), (0.75, None))
    assert Wanted(ci_ratio=1.25).excess(two) == inf
    assert Wanted(ci_ratio={"a": 1.25}).excess(two) == pytest.approx(1.0)
    assert two.half_widths == (None, None)
    with pytest.raises(InvalidQuery):
        Wanted().check(ForecastPrecision((), (), ()))


@pytest.mark.parametrize(
    ("wanted", "limit"),
    [({"ci_ratio": 1.0}, "1"), ({"ci_ratio": -3}, "1"), ({"half_width": 0}, "0")],
)
def test_a_width_that_cannot_be_is_named(wanted: dict[str, float], limit: str) -> None:
    body = {"dataset": "people", "query": {"kind": "count"}, "wanted": wanted}
    with pytest.raises(ValidationError) as refused:
        PlanBody.model_validate(body)
    errors = [{**each, "loc": ("body", *each["loc"])} for each in refused.value.errors()]
    (name,) = wanted
    assert str(explained(errors)) == f"wanted.{name} must be greater than {limit}."
