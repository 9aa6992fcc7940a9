# SPDX-License-Identifier: Apache-2.0
"""The routes of version 1: each parses, calls the pipeline, and returns."""

import json
from functools import partial
from math import ceil, isfinite
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.concurrency import run_in_threadpool

from reticent_server.api import replies
from reticent_server.api.dependencies import (
    AnswerLater,
    Asker,
    Caller,
    IdempotencyKey,
    Wisher,
    WithServices,
)
from reticent_server.api.problems import documented
from reticent_server.api.schemas_plan import PlanBody
from reticent_server.api.strict_json import StrictRoute
from reticent_server.api.threads import read, release_threads
from reticent_server.errors import Unavailable
from reticent_server.pipeline import answer, browse, deferred, projects, publishing
from reticent_server.web.bodies import PersonsBody, RequestBody
from reticent_server.web.free_work import free_work
from reticent_server.web.project_bodies import ProjectBody

MAX_PAGE = 100
MAX_OFFSET = 1_000_000

router = APIRouter(
    prefix="/v1", route_class=StrictRoute, responses=documented(401, 403, 429, 500, 503)
)
open_router = APIRouter()

Limit = Annotated[int, Query(ge=1, le=MAX_PAGE)]
Offset = Annotated[int, Query(ge=0, le=MAX_OFFSET)]
Reply = dict[str, Any]


def _json(body: bytes) -> Response:
    return Response(body, media_type="application/json")


def _written(value: Reply) -> Response:
    """JSON at once: the models of replies are for the document, and tests hold replies to it."""
    return _json(json.dumps(_finite(value), allow_nan=False, separators=(",", ":")).encode())


def _finite(value: Any) -> Any:
    """With null for a number that is not finite (a forecast of what cannot be estimated)."""
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def _created(body: bytes) -> Response:
    location = f"/v1/releases/{json.loads(body)['id']}"
    return Response(body, 201, {"Location": location}, media_type="application/json")


def _accepted(body: bytes) -> Response:
    """202 where the answer is still to come, else as if it had been waited for."""
    release = json.loads(body)
    if release["status"] != "pending":
        return _created(body)
    headers = {
        "Location": f"/v1/releases/{release['id']}",
        "Preference-Applied": "respond-async",
        "Retry-After": str(ceil(release["progress"]["remaining_ms"] / 1000)),
    }
    return Response(body, 202, headers, media_type="application/json")


@open_router.get("/healthz", response_model=replies.HealthReply)
async def healthz() -> Reply:
    """The process lives. Whether it could answer is for /readyz."""
    return {"status": "ok"}


@open_router.get("/readyz", response_model=replies.ReadyReply, responses=documented(503))
async def readyz(services: WithServices) -> Reply:
    """The database and the vault answer."""
    away = await read(services.readiness.away)
    if away:
        raise Unavailable(
            f"The {' and the '.join(away)} of this server did not answer; ask again later."
        )
    return {"status": "ready"}


@router.get("/datasets", response_model=replies.DatasetsReply)
async def list_datasets(services: WithServices, asker: Asker) -> Response:
    """The data sets that you have a grant for."""
    return await read(lambda: _written({"datasets": browse.datasets(services, asker())}))


@router.get("/datasets/{name}", response_model=replies.DatasetReply, responses=documented(404))
async def show_dataset(services: WithServices, asker: Asker, name: str) -> Response:
    """What is public about one data set."""
    return await read(lambda: _written(browse.dataset(services, asker(), name)))


@router.get(
    "/datasets/{name}/published",
    response_model=replies.ReleasesReply,
    responses=documented(404, 422),
)
async def list_published(
    services: WithServices, caller: Caller, name: str, limit: Limit = 50, offset: Offset = 0
) -> Response:
    """The releases that the curator has published to all who have a grant for the data set, the
    last published first. Free.
    """
    return _json(await read(partial(publishing.published, services, caller, name, limit, offset)))


@router.post(
    "/datasets/{name}/persons",
    response_model=replies.DatasetReply,
    responses=documented(404, 408, 413, 422),
)
async def show_persons(
    request: Request, services: WithServices, caller: Caller, name: str, body: PersonsBody
) -> Response:
    """A data set as a table with one row a person, with these features for columns: their kinds and
    bounds. Free."""

    def shown() -> Response:
        return _written(browse.persons(services, caller, name, body.persons))

    return await free_work(services.settings).run(caller.id, request, shown)


@router.get("/budget", response_model=replies.BudgetReply)
async def show_budget(services: WithServices, asker: Asker) -> Response:
    """Your accounts, in the units that they are kept in: ε and δ, or ρ and δ under the rules zcdp
    and gdp.
    """
    return await read(lambda: _written({"accounts": browse.accounts(services, asker())}))


@router.get("/projects", response_model=replies.ProjectsReply)
async def list_projects(services: WithServices, asker: Asker) -> Response:
    """The projects that you are a member of."""
    return await read(lambda: _written({"projects": browse.projects(services, asker())}))


@router.post(
    "/requests",
    status_code=201,
    response_model=replies.RequestReply,
    responses=documented(408, 409, 413, 422),
)
def make_request(services: WithServices, caller: Wisher, body: ProjectBody) -> Response:
    """Asks for a project; a budget officer approves, changes or refuses it. Free."""
    made = projects.file(services, caller, body.document())
    return Response(_written(made).body, 201, media_type="application/json")


@router.get("/requests", response_model=replies.RequestsReply)
async def list_requests(services: WithServices, caller: Wisher) -> Response:
    """Your requests for projects: those that wait, then the newest."""
    requests = await read(partial(services.requests.of, caller.id))
    return _written({"requests": [projects.request_json(request) for request in requests]})


@router.post("/plans", response_model=replies.PlanReply, responses=documented(404, 408, 413, 422))
async def make_plan(
    request: Request, services: WithServices, caller: Caller, body: PlanBody
) -> Response:
    """What a release would cost, whether your budget covers it, what it would promise, and its
    expected errors. Free."""

    def planned() -> Response:
        document = answer.plan_document(services, caller, body.ask(), body.widths(), body.target)
        return _written(document)

    return await free_work(services.settings).run(caller.id, request, planned)


@router.post(
    "/releases",
    status_code=201,
    response_model=replies.ReleaseReply,
    responses={202: {"model": replies.ReleaseReply}, **documented(404, 408, 409, 413, 422)},
)
async def make_release(
    request: Request,
    services: WithServices,
    caller: Caller,
    body: RequestBody,
    key: IdempotencyKey,
    later: AnswerLater,
) -> Response:
    """An answer: charged before a private cell is read, stored for ever."""
    ask = body.ask(key)
    with release_threads(services.settings.release_threads).place(caller.id) as place:
        async with services.pace.arriving():
            asked = await read(partial(answer.covered, services, caller, ask))
            planned = partial(answer.prepared, services, asked)
            work = free_work(services.settings)
            ready = await work.run(caller.id, request, planned, bounded=False)
        if later:
            accept = partial(deferred.accept, services, caller, ready)
            reply = _accepted(await run_in_threadpool(accept))
        else:
            reply = _created(await place.run(partial(answer.finished, services, ready)))
        if key is not None:  # so that a client sees that the reply is that of its own request
            reply.headers["Idempotency-Key"] = key
        return reply


@router.get("/releases", response_model=replies.ReleasesReply, responses=documented(422))
async def list_releases(
    services: WithServices, caller: Caller, limit: Limit = 50, offset: Offset = 0
) -> Response:
    """Your releases, newest first, again and again."""
    return _json(await read(partial(browse.releases, services, caller, limit, offset)))


@router.get(
    "/releases/{release_id}", response_model=replies.ReleaseReply, responses=documented(404)
)
async def show_release(services: WithServices, asker: Asker, release_id: str) -> Response:
    """One of your releases: the same bytes as when it was made."""
    return _json(await read(lambda: browse.release(services, asker(), release_id)))


@router.delete(
    "/releases/{release_id}", response_model=replies.ReleaseReply, responses=documented(404, 409)
)
def cancel_release(services: WithServices, asker: Asker, release_id: str) -> Response:
    """Cancels a release whose computation has not begun, and gives back its cost."""
    return _json(deferred.cancel(services, asker(), release_id))
