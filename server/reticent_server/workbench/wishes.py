# SPDX-License-Identifier: Apache-2.0
"""Asking for budget: a request for a project, which a budget officer decides."""

import json

from fastapi import Response
from pydantic import ValidationError

from reticent_server.errors import InvalidRequest, ReticentError
from reticent_server.pipeline import browse, projects
from reticent_server.web.forms import amount
from reticent_server.web.project_bodies import ProjectBody
from reticent_server.web.routing import pages_router
from reticent_server.web.validation import explained
from reticent_server.web.visits import Visit
from reticent_server.workbench.asking import Asking, Wishing, asker

router = pages_router("workbench")


@router.get("/budget")
def show(visit: Asking) -> Response:
    """One's accounts and requests, and the form of a new request."""
    return _page(visit)


@router.post("/budget")
def wish(visit: Wishing) -> Response:
    """Files a request; it is free, and grants nothing."""
    try:
        projects.file(visit.services, asker(visit), _body(visit).document())
    except ReticentError as error:
        return _page(visit, error)
    return visit.redirect("/workbench/budget?done=1")


def _body(visit: Visit) -> ProjectBody:
    fields = visit.fields
    share = {
        "dataset": fields.get("dataset", ""),
        "epsilon": amount(fields, "epsilon", "Epsilon"),
        "delta": amount(fields, "delta", "Delta"),
    }
    body = {
        "name": fields.get("name", ""),
        "purpose": fields.get("purpose", ""),
        "ends_on": fields.get("ends_on") or None,
        "budgets": [share],
        "plan": [],
    }
    try:
        return ProjectBody.model_validate_json(json.dumps(body))
    except ValidationError as error:
        placed = [{**each, "loc": ("body", *each["loc"])} for each in error.errors()]
        raise InvalidRequest(explained(placed).detail) from None


def _page(visit: Visit, problem: ReticentError | None = None) -> Response:
    services, principal = visit.services, asker(visit)
    return visit.page(
        "budget.html",
        problem.status if problem else 200,
        accounts=browse.accounts(services, principal),
        requests=[projects.request_json(each) for each in services.requests.of(principal.id)],
        datasets=[each["name"] for each in browse.datasets(services, principal)],
        problem=problem.detail if problem else "",
        given={
            name: visit.fields.get(name, "")
            for name in ("name", "purpose", "dataset", "epsilon", "delta", "ends_on")
        },
        done="done" in visit.request.query_params,
    )
