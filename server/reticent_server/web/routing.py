# SPDX-License-Identifier: Apache-2.0
"""Routes of pages: their errors are pages, and their replies carry the headers of pages."""

from asyncio import Semaphore
from collections.abc import Callable, Coroutine
from contextlib import nullcontext
from inspect import iscoroutinefunction
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse
from fastapi.routing import APIRoute

from reticent_server.errors import NotFound, RateLimited, ReticentError
from reticent_server.events import EventLogger
from reticent_server.web.site import Site
from reticent_server.web.visits import (
    PAGE_HEADERS,
    SignInNeeded,
    current_session,
    site_of,
    to_sign_in,
)

log = EventLogger(__name__)

Handler = Callable[[Request], Coroutine[Any, Any, Response]]

NOTHING = NotFound("There is no such page.")


class PageRoute(APIRoute):
    """A route whose every reply is a page, a part of one, or a way to one."""

    def get_route_handler(self) -> Handler:
        """FastAPI's handler, with the pages' headers, and with errors shown as pages."""
        handler = super().get_route_handler()
        in_a_thread = not iscoroutinefunction(self.endpoint)

        async def handled(request: Request) -> Response:
            try:
                async with self.turns(site_of(request)) if in_a_thread else nullcontext():
                    response = await handler(request)
            except Exception as error:  # noqa: BLE001 - the class is logged, and no more
                response = _answer_to(request, error)
            for name, value in PAGE_HEADERS.items():
                response.headers.setdefault(name, value)
            return response

        return handled

    def turns(self, site: Site) -> Semaphore:
        """Those of the pages that wait for each other."""
        return site.turns


class ProviderRoute(PageRoute):
    """A route that asks the identity provider, which may not answer for long."""

    def turns(self, site: Site) -> Semaphore:
        """No other page waits for these."""
        return site.provider_turns


def pages_router(name: str, route_class: type[PageRoute] = PageRoute) -> APIRouter:
    """A router below /name whose routes are not in the OpenAPI document."""
    return APIRouter(prefix=f"/{name}", route_class=route_class, include_in_schema=False)


def add_routes(application: FastAPI, part: APIRouter) -> None:
    """Adds the routes of a router as they are. `include_router` makes each anew, with its models,
    in every application that a request comes to: 20 ms of processor time for the console and the
    interface.
    """
    application.router.routes.extend(part.routes)


def _answer_to(request: Request, error: Exception) -> Response:
    match error:
        case SignInNeeded():
            return to_sign_in(request, error)
        case RequestValidationError():
            return _page(request, NOTHING.status, NOTHING.title, NOTHING.detail)
        case RateLimited():
            page = _page(request, error.status, error.title, error.detail)
            page.headers["Retry-After"] = str(error.retry_after)
            return page
        case ReticentError():
            return _page(request, error.status, error.title, error.detail)
        case _:
            log.error("unexpected_error", error=type(error).__name__)
            return _page(request, 500, "Internal error", "The server met an unexpected condition.")


def _page(request: Request, status: int, title: str, detail: str) -> Response:
    session = current_session(request)
    site = site_of(request)
    html = site.templates.get_template("error.html").render(
        title=title,
        detail=detail,
        signed_in=bool(session and session.is_signed_in),
        home=site.identity.home,
    )
    return HTMLResponse(html, status)
