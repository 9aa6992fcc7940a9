# SPDX-License-Identifier: Apache-2.0
"""The pages that a paper is made from: survival curves with their numbers at risk, estimates with
their intervals drawn, Table 1 and the study desk, by axe at both widths.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from reticent_server.domain.query import Privacy
from reticent_server.kinds.describe.kind import Describe
from reticent_server.kinds.hazard_regression.kind import HazardRegression
from reticent_server.kinds.study.kind import Study
from reticent_server.kinds.survival_curve.kind import SurvivalCurve
from reticent_server.pipeline.answer import Ask, answer
from support.installations.small import opened
from support.interfaces.accessibility import ALL, Theme, problems

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from support.installations.console import Desk, History

QUESTIONS = {
    "curves": SurvivalCurve("k", "b", "g"),
    "curve": SurvivalCurve("k", "b"),
    "hazards": HazardRegression("Surv(k, b) ~ x + C(g)"),
    "table": Describe(("x", "k", "g"), by="b"),
    "study": Study(("y", "x", "k", "b")),
}
LOOKS: list[tuple[int, Theme, dict[str, object]]] = [(390, "dark", ALL), (1280, "light", ALL)]
ROBUSTNESS = "done=" + "a%3Drobustness%26base%3Dy+~+x%26variations%3D%252B+k%252C+%252B+b"


def released(desk: Desk, history: History) -> dict[str, str]:
    """Places of pages, by question."""
    found = {}
    with opened(desk.services.settings) as services:
        ana = services.access.authenticate(history.installation.keys["ana"])
        assert ana is not None
        for name, query in QUESTIONS.items():
            asked = Ask("people", query, Privacy(2.0))
            document: dict[str, Any] = json.loads(answer(services, ana, asked))
            assert document["status"] == "reply", name
            found[name] = document["id"]
    return found


def sign_in(page: Page, history: History) -> None:
    """By the keyboard."""
    page.goto("/workbench/")
    page.get_by_label("Your key").focus()
    page.keyboard.type(history.installation.keys["ana"])
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Sign out").wait_for()


@pytest.mark.audit
def test_figures_of_a_paper_at_both_widths(page: Page, desk: Desk, history: History) -> None:
    ids = released(desk, history)
    sign_in(page, history)
    places = [f"releases/{ids[name]}" for name in ("curves", "curve", "hazards")]
    places += [f"releases/{ids['table']}/table-1", f"studies/{ids['study']}?{ROBUSTNESS}"]
    found = []
    for place in places:
        page.goto(f"/workbench/{place}")
        found += problems(page, LOOKS)
    assert found == []
    page.goto(f"/workbench/releases/{ids['curves']}")
    figure = page.get_by_role("figure")
    assert figure.get_by_text("k", exact=True).is_visible()  # the axis of time
    assert figure.get_by_role("table").is_visible()  # the numbers at risk
