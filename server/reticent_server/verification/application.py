# SPDX-License-Identifier: Apache-2.0
"""Puts the verification page into the application: public, without a session, and limited in how
often it is asked."""

from math import ceil
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse

from reticent_server.domain.roles import Act
from reticent_server.errors import InvalidRequest, RateLimited
from reticent_server.pipeline.services import Services
from reticent_server.verification.checking import LONGEST, checked
from reticent_server.web.files import files_router
from reticent_server.web.routing import add_routes, pages_router
from reticent_server.web.sessions import Sessions
from reticent_server.web.site import Site, SiteIdentity, templates
from reticent_server.web.visits import Fields, site_of
from reticent_server.web.words import plain_words

IDENTITY = SiteIdentity("verify", Act.ASK, "reticent-verify", "", "")
BUCKET = "the public verification page"
"""Where its requests are counted: all of them together, as often a minute as attempts to sign
in."""

_HERE = Path(__file__).parent
router = pages_router(IDENTITY.name)


def install_verification(application: FastAPI, services: Services) -> None:
    """Adds the page at /verify; it is not part of the OpenAPI document."""
    sessions = Sessions(services.peppers, services.clock, "nobody")
    site = Site(IDENTITY, services, sessions, templates(_HERE / "templates"))
    application.state.sites = {**getattr(application.state, "sites", {}), IDENTITY.name: site}
    add_routes(application, router)
    add_routes(application, _FILES)


_FILES = files_router(IDENTITY.name, _HERE / "static")


@router.get("")
def show(request: Request) -> Response:
    """The empty form."""
    return _page(request, verdict=None, text="", words=None)


@router.post("")
def verify(request: Request, fields: Fields) -> Response:
    """The verdict on what was pasted. Nothing is changed, so the form needs no token."""
    services, text = site_of(request).services, fields.get("release", "")
    wait = services.sign_in_limits.wait(BUCKET)
    if wait > 0:
        raise RateLimited(f"This page is asked too often; wait {ceil(wait)} s.", ceil(wait))
    if len(text) > LONGEST:
        raise InvalidRequest("The text is longer than any release.")
    verdict = checked(services, text)
    words = None if verdict.document is None else plain_words(verdict.document["guarantee"])
    return _page(request, verdict=verdict, text=text, words=words)


def _page(request: Request, **context: Any) -> Response:
    html = site_of(request).templates.get_template("verify.html").render(**context)
    return HTMLResponse(html)
