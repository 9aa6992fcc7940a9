# SPDX-License-Identifier: Apache-2.0
"""Budgets: every account, a form to set one, and a form to credit one."""

from collections.abc import Mapping
from typing import Annotated, Any, cast

from fastapi import Depends, Response

from reticent_server.console.looking import Signed
from reticent_server.console.pages import AccountRow, account, chart
from reticent_server.domain.amounts import Rule
from reticent_server.domain.roles import Act
from reticent_server.errors import InvalidRequest, ReticentError
from reticent_server.pipeline import budgets
from reticent_server.pipeline.budgets import BudgetChange
from reticent_server.web.forms import amount
from reticent_server.web.routing import pages_router
from reticent_server.web.visits import Visit, posted_for

router = pages_router("console")

Paying = Annotated[Visit, Depends(posted_for(Act.SET_BUDGETS))]

_RULES = ("", "basic", "zcdp", "gdp")
_DONE = {"set": "The budget is set.", "credit": "The credit is written to the ledger."}


@router.get("/budgets")
def show(visit: Signed) -> Response:
    """Every account with its gauge, and the two forms."""
    form = visit.request.query_params.get("form", "")
    return _page(visit, form="credit" if form == "credit" else "")


def _page(visit: Visit, problem: ReticentError | None = None, form: str = "") -> Response:
    services = visit.services
    accounts = [account(services, b) for b in services.ledger.all_balances()]
    given = {**visit.request.query_params, **visit.fields}
    chosen = next((a for a in accounts if a.balance.account == given.get("account")), None)
    return visit.page(
        "budgets.html",
        problem.status if problem else 200,
        accounts=accounts,
        chosen=chosen,
        chart=chart(services, chosen.balance if chosen else None),
        datasets=[facts.name for facts in services.catalog.list()],
        analysts=[a.name for a in services.access.analysts() if not a.revoked],
        projects=[p.name for p in services.projects.all() if p.is_live],
        problem=problem.detail if problem else "",
        form=form,
        given=_given(given, chosen),
        done=_DONE.get(given.get("done", ""), ""),
    )


def _given(given: dict[str, str], chosen: AccountRow | None) -> dict[str, Any]:
    """What the forms are filled with: what was sent or linked, else empty."""
    amounts = ("epsilon", "delta", "query_delta", "rule", "primary", "reason")
    names = ("dataset", "analyst", "project", *amounts)
    filled = {name: given.get(name, "") for name in names}
    return filled | {"account": chosen.balance.account if chosen else ""}


@router.post("/budgets/set")
def set_budget(visit: Paying) -> Response:
    """Opens an account or changes its cap; with an analyst, also grants the data set."""
    fields = visit.fields
    try:
        offer = BudgetChange(
            epsilon=amount(fields, "epsilon", "Epsilon"),
            delta=amount(fields, "delta", "Delta"),
            rule=_rule(fields.get("rule", "")),
            by=visit.actor,
            query_delta=_query_delta(fields),
        )
        dataset, analyst = fields.get("dataset", ""), fields.get("analyst") or None
        project = fields.get("project") or None
        balance = budgets.set_budget(visit.services, dataset, analyst, offer, project=project)
    except ReticentError as error:
        return _page(visit, error, "set")
    return visit.redirect(f"/console/budgets?done=set&account={balance.account}#chosen")


@router.post("/budgets/credit")
def credit(visit: Paying) -> Response:
    """Subtracts an amount from what is spent, with a reason that is kept."""
    fields = visit.fields
    try:
        balance = budgets.credit(
            visit.services,
            fields.get("account", ""),
            amount(fields, "primary", "The amount"),
            amount(fields, "delta", "Delta"),
            reason=fields.get("reason", ""),
            by=visit.actor,
        )
    except ReticentError as error:
        return _page(visit, error, "credit")
    return visit.redirect(f"/console/budgets?done=credit&account={balance.account}#chosen")


def _query_delta(fields: Mapping[str, str]) -> float | None:
    """None where the field is empty. Raises InvalidPrivacy."""
    return amount(fields, "query_delta", "Delta for queries") if fields.get("query_delta") else None


def _rule(text: str) -> Rule | None:
    if text not in _RULES:
        raise InvalidRequest("The rule is basic, zcdp or gdp.")
    return cast(Rule, text) if text else None
