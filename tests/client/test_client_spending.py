# SPDX-License-Identifier: Apache-2.0
"""Widths in place of an epsilon: what is planned, who is asked, and that nothing is spent
before.
"""

from typing import Any

import httpx
import pytest

import reticent
from reticent import _spending
from reticent._plan import Plan
from reticent._spending import Spending
from support.client.replying_server import GUARANTEE, Server, release

PLAN: dict[str, Any] = {
    "dataset": "houses",
    "version": 2,
    "query": {"kind": "mean", "column": "price"},
    "cost": {"epsilon": 0.31, "delta": 1e-6, "rho": 0.002, "rho_delta": 0.0},
    "guarantee": GUARANTEE,
    "deadline_ms": 100,
    "forecast": {"privacy_standard_error": 3.0},
    "precision": {"names": ["mean"], "ci_ratios": [1.25], "half_widths": [9.8]},
    "budget": {},
}
WIDE = PLAN | {"precision": {"names": ["mean"], "ci_ratios": [7.0], "half_widths": [90.0]}}


def asked(server: Server, plan: Any = None, **spending: Any) -> Any:
    """A mean, and the bodies that were sent for it."""
    server.replies.clear()
    dataset = server.dataset()
    server.replies = [
        httpx.Response(200, json=plan or PLAN),
        httpx.Response(201, json=release("mean")),
    ]
    server.requests.clear()
    return dataset.mean("price", **spending)


def paths(server: Server) -> list[str]:
    return [request.url.path.removeprefix("/base") for request in server.requests]


def test_a_ratio_is_planned_and_then_bought_at_the_epsilon_that_was_found(server: Server) -> None:
    asked(server, ci_ratio=1.25, confirm=True)
    assert paths(server) == ["/v1/plans", "/v1/releases"]
    plan = httpx.Response(200, content=server.requests[0].content).json()
    assert plan["wanted"] == {"ci_ratio": 1.25}
    assert plan["privacy"] == {}
    assert server.body()["privacy"] == {"epsilon": 0.31}
    assert "wanted" not in server.body()


def test_an_epsilon_beside_it_is_the_most_and_nobody_is_asked(server: Server) -> None:
    asked(server, half_width={"mean": 10}, epsilon=2)
    plan = httpx.Response(200, content=server.requests[0].content).json()
    assert plan["wanted"] == {"half_width": {"mean": 10.0}}
    assert plan["privacy"] == {"epsilon": 2.0}
    assert server.body()["privacy"] == {"epsilon": 0.31}


def test_a_script_that_can_ask_nobody_spends_nothing(server: Server) -> None:
    with pytest.raises(reticent.ConfirmationNeeded, match="confirm=True") as refusal:
        asked(server, ci_ratio=1.25)
    assert paths(server) == ["/v1/plans"]
    assert refusal.value.plan.cost.epsilon == 0.31


@pytest.mark.parametrize(("answer", "spent"), [("y", True), ("", False), ("no", False)])
def test_at_a_prompt_the_answer_decides(
    server: Server, monkeypatch: pytest.MonkeyPatch, answer: str, spent: bool
) -> None:
    told = []
    monkeypatch.setattr(
        _spending, "at_prompt", lambda: lambda text: told.append(text) or answer == "y"
    )
    if spent:
        asked(server, ci_ratio=1.25)
    else:
        with pytest.raises(reticent.ConfirmationNeeded):
            asked(server, ci_ratio=1.25)
    assert ("/v1/releases" in paths(server)) == spent
    assert "ε = 0.31" in told[0]


def test_nobody_is_at_a_prompt_in_a_script(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("sys.ps1", raising=False)
    monkeypatch.setattr("sys.modules", {})
    assert _spending.at_prompt() is None
    monkeypatch.setattr("sys.ps1", ">>> ", raising=False)
    ask = _spending.at_prompt()
    assert ask is not None
    monkeypatch.setattr("builtins.input", lambda _: "Y")
    assert ask("Spend it?")


def test_a_useless_forecast_is_refused_where_that_is_asked_for(server: Server) -> None:
    with pytest.raises(reticent.UselessForecast, match="mean"):
        asked(server, WIDE, epsilon=0.1, dry_run="warn")
    assert paths(server) == ["/v1/plans"]
    asked(server, epsilon=0.1, dry_run="warn")
    assert paths(server) == ["/v1/plans", "/v1/releases"]


def test_without_any_of_it_there_is_no_plan(server: Server) -> None:
    dataset = server.dataset()
    server.replies = [httpx.Response(201, json=release("mean"))]
    server.requests.clear()
    dataset.mean("price", epsilon=0.5)
    assert paths(server) == ["/v1/releases"]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "Give epsilon, ci_ratio or half_width"),
        ({"ci_ratio": 1.2, "half_width": 1.0}, "either"),
        ({"ci_ratio": "narrow"}, "ci_ratio must be"),
        ({"epsilon": 1.0, "dry_run": True}, "dry_run"),
    ],
)
def test_what_does_not_fit_is_said_before_anything_is_sent(
    server: Server, given: Any, sentence: str
) -> None:
    with pytest.raises(reticent.InvalidPrivacy, match=sentence):
        asked(server, **given)
    assert not server.requests


def test_a_plan_tells_its_widths() -> None:
    plan = Plan.from_json(PLAN)
    assert plan.ci_ratio == {"mean": 1.25}
    assert plan.half_width == {"mean": 9.8}
    assert not plan.useless
    assert "without privacy 1: mean 1.25" in repr(plan)
    assert "mean ±9.8" in repr(plan)
    without = Plan.from_json({k: v for k, v in PLAN.items() if k != "precision"})
    assert without.ci_ratio == {}
    assert not without.useless
    unlikely = PLAN | {"forecast": {"reply_likely": False}}
    lost = {"names": ["x"], "ci_ratios": [None], "half_widths": [None]}
    assert Plan.from_json(unlikely | {"precision": lost}).useless == ["x", "reply"]
    counted = {"names": ["count"], "ci_ratios": [None], "half_widths": [12.0]}
    assert not Plan.from_json(PLAN | {"precision": counted}).useless


def test_confirm_false_asks_in_any_case() -> None:
    spending = Spending(epsilon=1.0, confirm=False)
    assert spending.needs_plan
    with pytest.raises(reticent.ConfirmationNeeded):
        spending.settled(Plan.from_json(PLAN), lambda _: False)
    assert spending.settled(Plan.from_json(PLAN), lambda _: True) == 0.31
