# SPDX-License-Identifier: Apache-2.0
"""A question's plan for its page, and the plans along its curve: from public facts, where plans are
made (pipeline.planner).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Plan
from reticent_server.domain.query import Privacy, query_json
from reticent_server.ledger.model import Standing
from reticent_server.pipeline import defaults
from reticent_server.pipeline.ask import Ask
from reticent_server.pipeline.both_targets import other_target
from reticent_server.pipeline.documents import plan_json
from reticent_server.workbench import forecasting
from reticent_server.workbench.drafts import query_texts
from reticent_server.workbench.purses import Price, Purse, price

USUAL_LARGEST = 10.0
"""ε where a curve ends whose data set has no largest one: beyond it a release protects little."""


@dataclass(frozen=True, slots=True)
class TargetForecast:
    """One of a model's two targets at the ε that is asked. answers: the reply's first line.
    question: of a form, as texts.
    """

    answers: str
    at: forecasting.ForecastPoint | None
    question: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ForecastPanel:
    """A plan for the page. targets: the asked one and the other; empty where there is one only. at:
    the point of the curve at the ε that is asked. prices: of the curve's points, by ε.
    """

    plan: Mapping[str, Any]
    targets: tuple[TargetForecast, ...]
    purses: tuple[Purse, ...]
    curve: forecasting.ForecastCurve | None
    plot: forecasting.Plot | None
    at: forecasting.ForecastPoint | None
    prices: Mapping[float, Price]
    body: str


def _of_target(plan: Plan) -> TargetForecast:
    at = forecasting.point(plan.epsilon, plan.planned.forecast)
    return TargetForecast(plan.planned.answers, at, query_texts(query_json(plan.query)))


def forecast_panel(facts: DatasetFacts, ask: Ask, standing: Standing, body: str) -> ForecastPanel:
    """Plans the question, and again along the curve. body: of the request, as JSON. Raises what
    planning raises.
    """
    _, ready = defaults.planned(facts, ask, standing)

    epsilon = ask.privacy.epsilon
    prices = {epsilon: price(ready, standing)}

    def at(epsilon: float) -> Mapping[str, Any]:
        other: Ask = replace(ask, privacy=Privacy(epsilon, ask.privacy.delta))
        planned = defaults.planned(facts, other, standing)[1]
        prices[epsilon] = price(planned, standing)
        return planned.planned.forecast

    largest = facts.policy.max_epsilon or USUAL_LARGEST
    fit = ready.planned.fit
    points = forecasting.FEW_POINTS if fit is not None and fit.is_wide else forecasting.POINTS
    curve = forecasting.curve(epsilon, largest, ready.planned.forecast, at, points)
    other = other_target(ready, partial(defaults.planned_instead, facts, ask, standing))
    return ForecastPanel(
        plan=plan_json(ready, standing),
        targets=() if other is None else tuple(map(_of_target, (ready, other))),
        purses=prices[epsilon].purses,
        curve=curve,
        plot=None if curve is None else forecasting.plot(curve, epsilon),
        at=forecasting.point(epsilon, ready.planned.forecast),
        prices=prices,
        body=body,
    )
