# SPDX-License-Identifier: Apache-2.0
"""Puts the workbench into the application: what its routes share, and the routes."""

from pathlib import Path

from fastapi import FastAPI, Response
from fastapi.responses import RedirectResponse

from reticent_server.domain.roles import Act
from reticent_server.pipeline.services import Services
from reticent_server.web.entrance import entrance_of
from reticent_server.web.files import files_router
from reticent_server.web.routing import NOTHING, add_routes, pages_router
from reticent_server.web.sessions import Sessions
from reticent_server.web.site import Site, SiteIdentity, templates
from reticent_server.web.tables import text
from reticent_server.workbench import desk, pages, releases, table_one, wishes
from reticent_server.workbench.drafts import OFFERED, asked_words
from reticent_server.workbench.purses import money

IDENTITY = SiteIdentity(
    name="workbench",
    act=Act.ASK,
    cookie="reticent-workbench",
    wrong_key="That is not an analyst's key. A curator adds analysts and gives out keys; a key of "
    "the staff opens the console instead.",
    nobody="The identity provider knows you, and nobody has linked that account with an analyst. "
    "A curator links it: reticent analyst link NAME --oidc-subject {}",
)
_HERE = Path(__file__).parent
PARTS = (
    entrance_of(IDENTITY.name, IDENTITY.act),
    pages.router,
    releases.router,
    desk.router,
    table_one.router,
    wishes.router,
    files_router(IDENTITY.name, _HERE / "static"),
)


def install_workbench(application: FastAPI, services: Services) -> None:
    """Adds the pages at /workbench; they are not part of the OpenAPI document."""
    sso = services.single_sign_on
    site = Site(
        IDENTITY,
        services,
        Sessions(services.peppers, services.clock, "analyst"),
        templates(
            _HERE / "templates",
            {"value": text, "title": _title, "asked": asked_words, "money": money},
        ),
        rates=services.rates,
        flow=None if sso is None else sso.analysts_flow,
    )
    application.state.sites = {**getattr(application.state, "sites", {}), IDENTITY.name: site}
    if sso is not None:
        from reticent_server.web.single_sign_on import provider_router  # noqa: PLC0415 - its libraries, where they are used

        add_routes(application, provider_router(IDENTITY.name))
    for part in PARTS:
        add_routes(application, part)
    last = pages_router(IDENTITY.name)
    last.add_api_route("/{path:path}", _nothing, methods=["GET"], response_model=None)
    add_routes(application, last)
    application.add_api_route("/", _home, include_in_schema=False, response_model=None)


_LABELS = {kind.name: kind.label for kind in OFFERED}


def _title(name: str) -> str:
    """The label of a kind; of another name its words."""
    return _LABELS.get(name, name.replace("_", " ").capitalize())


def _home() -> Response:
    """Whoever types the server's name alone is an analyst in front of a browser."""
    return RedirectResponse(IDENTITY.home, 303)


def _nothing(path: str) -> Response:  # noqa: ARG001
    raise NOTHING
