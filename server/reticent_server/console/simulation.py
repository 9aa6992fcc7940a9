# SPDX-License-Identifier: Apache-2.0
"""The simulator's page: what analysts can learn at a cap, from public facts."""

from collections.abc import Mapping
from functools import partial

from fastapi import Response

from reticent_server.console.looking import Signed
from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS, from_units
from reticent_server.domain.facts import DatasetFacts
from reticent_server.errors import ReticentError
from reticent_server.ledger.model import Balance
from reticent_server.pipeline import oversight
from reticent_server.pipeline.accounts import share_of_epsilon
from reticent_server.pipeline.services import Services
from reticent_server.pipeline.simulator import Simulation, ruled, simulate
from reticent_server.web.forms import amount, whole
from reticent_server.web.routing import pages_router
from reticent_server.web.visits import Visit

router = pages_router("console")

USUAL_CAP = 8.0
"""ε of a cap where none is set yet: some twenty questions then have ε .5 each under the rule
zcdp."""

USUAL_QUESTIONS = "20"
"""Of a paper with its tables: a beginning that a curator changes."""

_DELTAS = 10
"""δ of a cap where none is set: so many times a question's, of which an account keeps a tenth for
queries."""


@router.get("/datasets/{name}/simulator")
async def show(visit: Signed, name: str) -> Response:
    """The form, and the planned errors of typical questions at what it says."""
    return await visit.at_its_turn(partial(_page, visit, name))


def _page(visit: Visit, name: str) -> Response:
    facts = visit.services.catalog.facts(name)
    balance = visit.services.ledger.population_balance(facts.population)
    given = _given(visit.request.query_params, facts, balance)
    simulation, problem = None, None
    try:
        simulation = _simulated(visit.services, facts, balance, given)
    except ReticentError as error:
        problem = error
    return visit.page(
        "simulator.html",
        problem.status if problem else 200,
        facts=facts,
        balance=balance,
        spent_share=share_of_epsilon(balance) if balance else 0.0,
        given=given,
        simulation=simulation,
        asked=oversight.question,
        problem=problem.detail if problem else "",
    )


def _given(
    query: Mapping[str, str], facts: DatasetFacts, balance: Balance | None
) -> Mapping[str, str]:
    """The form's texts: what was sent, else the cap that is set, split over a usual number of
    questions."""
    epsilon = USUAL_CAP if balance is None else from_units(balance.epsilon, EPSILON_UNITS)
    delta = _DELTAS * facts.default_delta
    delta = delta if balance is None else from_units(balance.delta, DELTA_UNITS)
    usual = {
        "cap": f"{epsilon:.6g}",
        "delta": f"{delta:.6g}",
        "questions": USUAL_QUESTIONS,
        "epsilon": "",
    }
    return {name: query.get(name, text).strip() for name, text in usual.items()}


def _simulated(
    services: Services,
    facts: DatasetFacts,
    balance: Balance | None,
    given: Mapping[str, str],
) -> Simulation:
    cap, delta = amount(given, "cap", "The cap's ε"), amount(given, "delta", "The cap's δ")
    account = ruled(balance, cap, delta)
    each = amount(given, "epsilon", "ε of a question") if given["epsilon"] else None
    questions = whole(given["questions"]) or 0
    return services.planner.run(simulate, facts, account, questions, each)
