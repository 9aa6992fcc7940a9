# SPDX-License-Identifier: Apache-2.0
"""The data sets, and one data set with its question, its forecast, and the button that spends."""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from fastapi import Response
from fastapi.concurrency import run_in_threadpool

from reticent_server.chain.entries import digest
from reticent_server.domain.facts import DatasetFacts
from reticent_server.errors import InvalidRequest, ReticentError
from reticent_server.pipeline import browse, deferred
from reticent_server.pipeline.authorising import authorised
from reticent_server.pipeline.request import request_of
from reticent_server.pipeline.services import Services
from reticent_server.web.routing import pages_router
from reticent_server.web.visits import Visit
from reticent_server.workbench.asking import Asking, Running, asker
from reticent_server.workbench.columns import codebook
from reticent_server.workbench.controls import texts
from reticent_server.workbench.drafts import (
    CONTROLS,
    QUESTIONS,
    QuestionDraft,
    Trouble,
    asked,
    draft_of,
    is_named,
)
from reticent_server.workbench.panel import ForecastPanel, forecast_panel

router = pages_router("workbench")

_LAST = 8
"""Releases beside a question; the page of releases has all."""


@router.get("")
@router.get("/")
def home(visit: Asking) -> Response:
    """The data sets that one may ask about, and one's budgets."""
    principal = asker(visit)
    return visit.page(
        "home.html",
        datasets=browse.datasets(visit.services, principal),
        accounts=browse.accounts(visit.services, principal),
    )


@router.get("/datasets/{name}")
async def dataset(visit: Asking, name: str) -> Response:
    """The codebook, the question as the address has it, and its forecast."""
    query = visit.request.query_params
    draft = draft_of(name, query)
    adds = "add" in query
    wants = draft.is_complete if adds else "epsilon" in query and "choose" not in query
    make = partial(_page, visit, draft, wants_forecast=wants, is_being_written=adds)
    return await (visit.at_its_turn(make) if wants else run_in_threadpool(make))


@router.post("/datasets/{name}/run")
async def run(visit: Running, name: str) -> Response:
    """Charges and runs what was forecast. The idempotency key is made of the form's token: however
    often the form is sent, it is charged once, and leads to the same release.
    """
    return await visit.at_its_turn(partial(_run, visit, name))


def _run(visit: Visit, name: str) -> Response:
    body = _body(visit.fields.get("request", ""), name)
    key = f"workbench-{digest(visit.fields['form_token'])}"
    try:
        ask = asked(body, key)
        release = json.loads(deferred.answer_later(visit.services, asker(visit), ask))
    except ReticentError as error:
        return _page(visit, _draft_of_body(name, body), wants_forecast=True, refused=error)
    return visit.redirect(f"/workbench/releases/{release['id']}")


def _body(text: str, dataset: str) -> dict[str, Any]:
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict) or not isinstance(body.get("query"), dict):
        raise InvalidRequest("The form cannot be read. Open the data set again.")
    return {**body, "dataset": dataset}


def _draft_of_body(name: str, body: Mapping[str, Any]) -> QuestionDraft:
    query, privacy = body["query"], body.get("privacy")
    offered = privacy if isinstance(privacy, dict) else {}
    fields = {k: str(v) for k, v in {**offered, "project": body.get("project") or ""}.items()}
    kind = str(query.get("kind", ""))
    return draft_of(name, {**fields, "kind": kind, **texts(CONTROLS.get(kind, ()), query)})


def _page(
    visit: Visit,
    draft: QuestionDraft,
    *,
    wants_forecast: bool,
    refused: ReticentError | None = None,
    is_being_written: bool = False,
) -> Response:
    """is_being_written: what is wrong is not said yet."""
    services, principal = visit.services, asker(visit)
    seats = [seat[1] for seat in services.projects.seats(principal.id, draft.dataset)]
    own = services.access.granted(principal.id, draft.dataset)
    if not own and not draft.project and seats:
        draft = replace(draft, project=seats[0])
    admitted = authorised(services, principal, draft.dataset, draft.project or None)
    forecast, trouble = None, None
    if wants_forecast:
        try:
            forecast = _forecast(services, principal.id, admitted.facts, draft, admitted.project_id)
        except ReticentError as error:
            trouble = (
                None
                if is_being_written
                else draft.trouble(error, [c.name for c in admitted.facts.schema.columns])
            )
    status = refused.status if refused else 422 if trouble else 200
    releases = json.loads(browse.releases(services, principal, 50, 0))["releases"]
    return visit.page(
        "dataset.html",
        status,
        facts=admitted.facts,
        rows=codebook(admitted.facts),
        draft=draft,
        controls=draft.controls_for(admitted.facts),
        questions=QUESTIONS,
        projects=seats,
        own=own,
        forecast=forecast,
        trouble=trouble or Trouble(""),
        refused=refused,
        past=[r for r in releases if r["dataset"] == draft.dataset][:_LAST],
        is_named=is_named,
    )


def _forecast(
    services: Services,
    analyst_id: str,
    facts: DatasetFacts,
    draft: QuestionDraft,
    project_id: str | None,
) -> ForecastPanel:
    """Raises what planning raises; nothing is charged."""
    body = draft.body()
    ask = asked(body)
    standing = request_of(services, facts, ask, analyst_id, project_id).standing
    return services.planner.run(forecast_panel, facts, ask, standing, json.dumps(body))
