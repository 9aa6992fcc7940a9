# SPDX-License-Identifier: Apache-2.0
"""A request to the console: who asks, from which session, and how a page is given back."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from ipaddress import ip_address
from typing import Annotated, Any, cast
from urllib.parse import quote, urlsplit

from fastapi import Depends, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment

from reticent_server.chain.entries import digest
from reticent_server.console.forms import read_form
from reticent_server.console.sessions import IDLE_SECONDS, LONGEST_SECONDS, Session, Sessions
from reticent_server.domain.principal import Principal
from reticent_server.domain.roles import Act
from reticent_server.errors import Conflict, ReticentError
from reticent_server.pipeline.services import Services

HOME = "/console/"
SIGN_IN = "/console/sign-in"
PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "same-origin",  # with no-referrer, a browser's Origin would say nothing
    "X-Frame-Options": "DENY",
}
_OUTDATED = (
    "This page was open for too long, or comes from elsewhere. Open it again and send it again."
)
_SENT_TWICE = "This form was sent before, and what it asked for was done then, or refused. Open the page again to see."


class SignInNeeded(Exception):
    """No session, or one that has ended. ended: there was one."""

    def __init__(self, *, ended: bool) -> None:
        super().__init__("sign in")
        self.ended = ended


class Outdated(ReticentError):
    """A form without the session's token, or from another site."""

    code, status, title = "outdated", 403, "Out of date"


@dataclass(frozen=True, slots=True)
class Console:
    """What the console's routes share."""

    services: Services
    sessions: Sessions
    templates: Environment


@dataclass(frozen=True, slots=True)
class Visit:
    """One request. curator: None before signing in. fields: of the form that was posted."""

    console: Console
    request: Request
    session: Session
    curator: Principal | None = None
    fields: Mapping[str, str] = field(default_factory=dict)

    @property
    def services(self) -> Services:
        return self.console.services

    @property
    def actor(self) -> str:
        """Who acts, for the ledger."""
        return actor(self.curator) if self.curator else "console"

    def page(self, template: str, status: int = 200, **context: Any) -> Response:
        """A page of a template, with the session's cookie where it is to be sent again."""
        html = self.console.templates.get_template(template).render(
            curator=self.curator,
            allowed={act.name for act in Act if self.curator and self.curator.may(act)},
            form_token=partial(self.console.sessions.form_token, self.session),
            path=self.request.url.path,
            query=self.request.query_params,
            **context,
        )
        return self.keep(HTMLResponse(html, status))

    def redirect(self, path: str) -> Response:
        """To another page of the console, after a form: reloading it does nothing twice."""
        return self.keep(RedirectResponse(path, 303))

    def keep(self, response: Response) -> Response:
        """Sends the session's cookie again where that is due."""
        fresh = self.console.sessions.refreshed(self.session)
        if fresh is not None:
            set_cookie(self.request, response, self.console.sessions.seal(fresh))
        return response


def actor(curator: Principal) -> str:
    """Somebody who acts in the console, for the ledger."""
    return f"console:{curator.name}"


def console_of(request: Request) -> Console:
    return cast(Console, request.app.state.console)


def current_session(request: Request) -> Session | None:
    """The session that the cookie seals, if it has not ended."""
    cookie = request.cookies.get(cookie_name(request))
    return None if cookie is None else console_of(request).sessions.open(cookie)


def signed_in(request: Request) -> Visit:
    """The visit of somebody who has signed in. Raises SignInNeeded, too where the session was ended or the
    key revoked since, or the roles are none of the console's any more."""
    console, session = console_of(request), current_session(request)
    curator = None
    if session is not None and session.is_signed_in:
        curator = console.services.sign_ins.holder(session.id)
    if session is None or curator is None or not curator.may(Act.LOOK):
        raise SignInNeeded(ended=cookie_name(request) in request.cookies)
    return Visit(console, request, session, curator)


Fields = Annotated[Mapping[str, str], Depends(read_form)]


@dataclass(frozen=True, slots=True)
class SignedFor:
    """The visit of somebody who may do `act`. Raises SignInNeeded, WrongRole."""

    act: Act

    def __call__(self, request: Request) -> Visit:
        visit = signed_in(request)
        cast(Principal, visit.curator).require(self.act)
        return visit


def posted_for(act: Act) -> Callable[..., Visit]:
    """The form of somebody who may do `act`, sent by a page of this session, once. Raises SignInNeeded,
    WrongRole, Outdated, or Conflict for a form that was sent before: of many at once, one goes through."""

    def posted(visit: Annotated[Visit, Depends(SignedFor(act))], fields: Fields) -> Visit:
        check_origin(visit.request, fields, visit.session)
        token = digest(fields["form_token"])
        if not visit.services.form_tokens.use(token, LONGEST_SECONDS + IDLE_SECONDS):
            raise Conflict(_SENT_TWICE)
        return Visit(visit.console, visit.request, visit.session, visit.curator, fields)

    return posted


Signed = Annotated[Visit, Depends(SignedFor(Act.LOOK))]


def check_origin(request: Request, fields: Mapping[str, str], session: Session) -> None:
    """Raises Outdated unless the form carries the session's token and comes from this site."""
    sessions = console_of(request).sessions
    origin = request.headers.get("origin")
    elsewhere = request.headers.get("sec-fetch-site", "same-origin") != "same-origin"
    if origin is not None and urlsplit(origin).netloc != request.headers.get("host"):
        elsewhere = True
    if elsewhere or not sessions.is_form_token(session, fields.get("form_token", "")):
        raise Outdated(_OUTDATED)


def to_sign_in(request: Request, needed: SignInNeeded) -> Response:
    """To the sign-in page, and from there back; a part of a page sends the whole page there."""
    is_part = "hx-request" in request.headers
    path = HOME if is_part or request.method != "GET" else request.url.path
    place = f"{SIGN_IN}?next={quote(path)}" + ("&ended=1" if needed.ended else "")
    if is_part:
        return Response(status_code=204, headers={"HX-Redirect": place})
    return RedirectResponse(place, 303)


def cookie_name(request: Request) -> str:
    """With the prefix that lets no other host or port set it, where the browser allows that."""
    return "__Host-reticent" if is_secure(request) else "reticent"


def set_cookie(request: Request, response: Response, value: str) -> None:
    response.set_cookie(
        cookie_name(request),
        value,
        max_age=LONGEST_SECONDS,
        path="/",
        secure=is_secure(request),
        httponly=True,
        samesite="strict",
    )


def drop_cookie(request: Request, response: Response) -> None:
    response.delete_cookie(
        cookie_name(request), path="/", secure=is_secure(request), httponly=True, samesite="strict"
    )


def is_in_the_clear(request: Request) -> bool:
    """Whether keys would travel over a network without TLS, as far as can be seen from here.

    A proxy's headers are never read; but browsers send Sec-Fetch-Site over TLS only (and to the
    machine itself), so where it came, the browser's way to the proxy is not in the clear.
    """
    elsewhere = not _is_loopback(request.url.hostname or "")
    return elsewhere and request.url.scheme != "https" and "sec-fetch-site" not in request.headers


def is_secure(request: Request) -> bool:
    """Secure cookies everywhere but at http://127.0.0.1 and the like: behind a proxy that ends TLS the
    server sees http, and the browser speaks TLS."""
    return request.url.scheme == "https" or not _is_loopback(request.url.hostname or "")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
