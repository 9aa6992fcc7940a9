# SPDX-License-Identifier: Apache-2.0
"""Puts the console into the application: what its routes share, and the routes."""

from pathlib import Path

from fastapi import FastAPI, Response

from reticent_server.console import (
    keys,
    ledger,
    money,
    pages,
    projects,
    proposals,
    simulation,
    tables,
    terms,
)
from reticent_server.domain.roles import Act
from reticent_server.pipeline.services import Services
from reticent_server.web.entrance import entrance_of
from reticent_server.web.files import files_router
from reticent_server.web.routing import NOTHING, add_routes, pages_router
from reticent_server.web.sessions import Sessions
from reticent_server.web.site import Site, SiteIdentity, templates
from reticent_server.web.tables import text

IDENTITY = SiteIdentity(
    name="console",
    act=Act.LOOK,
    cookie="reticent",
    wrong_key="That is not a key for the console, which is for curators, budget officers and "
    "auditors. Keys come from `reticent curator add` and `rotate-key`.",
    nobody="The identity provider knows you, and nobody has linked that account with one that may "
    "see the console. Whoever installed the server links it: reticent curator link NAME "
    "--oidc-subject {}",
)
_HERE = Path(__file__).parent
PARTS = (
    entrance_of(IDENTITY.name, IDENTITY.act),
    pages.router,
    tables.router,
    terms.router,
    simulation.router,
    keys.router,
    money.router,
    projects.router,
    proposals.router,
    ledger.router,
    files_router(IDENTITY.name, _HERE / "static"),
)


def install_console(application: FastAPI, services: Services) -> None:
    """Adds the pages at /console; they are not part of the OpenAPI document."""
    sso = services.single_sign_on
    site = Site(
        IDENTITY,
        services,
        Sessions(services.peppers, services.clock),
        templates(_HERE / "templates", {"value": text}),
        flow=None if sso is None else sso.flow,
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


def _nothing(path: str) -> Response:  # noqa: ARG001
    raise NOTHING
