# SPDX-License-Identifier: Apache-2.0
"""A request to a page: who asks, from which session, and how a page is given back."""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from functools import partial
from ipaddress import ip_address
from math import ceil
from typing import Annotated, Any, cast
from urllib.parse import quote, urlsplit

from fastapi import Depends, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from reticent_server.chain.entries import digest
from reticent_server.domain.principal import Principal
from reticent_server.domain.roles import Act
from reticent_server.errors import Conflict, RateLimited, ReticentError
from reticent_server.pipeline.services import Services
from reticent_server.web.cookies import cookie
from reticent_server.web.forms import read_form
from reticent_server.web.free_work import free_work
from reticent_server.web.sessions import IDLE_SECONDS, LONGEST_SECONDS, Session
from reticent_server.web.site import Site

PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors "
    "'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "same-origin",  # with no-referrer, a browser's Origin would say nothing
    "X-Frame-Options": "DENY",
}
_OUTDATED = (
    "This page was open for too long, or comes from elsewhere. Open it again and send it again."
)
_ANOTHER_HOST = (
    "The browser sent this form to {}, and the request that arrived here is for {}. A proxy in "
    "between has to hand on the host: in nginx, proxy_set_header Host $http_host."
)
LONGEST_HOST = 255
"""Characters that are shown of a host, which no name is longer than (RFC 1035)."""

_SENT_TWICE = (
    "This form was sent before, and what it asked for was done then, or refused. Open the page "
    "again to see."
)


class SignInNeeded(Exception):
    """No session, or one that has ended. ended: there was one."""

    def __init__(self, *, ended: bool) -> None:
        super().__init__("sign in")
        self.ended = ended


class Outdated(ReticentError):
    """A form without the session's token, or from another site."""

    code, status, title = "outdated", 403, "Out of date"


@dataclass(frozen=True, slots=True)
class Visit:
    """One request. holder: None before signing in. fields: of the form that was posted."""

    site: Site
    request: Request
    session: Session
    holder: Principal | None = None
    fields: Mapping[str, str] = field(default_factory=dict)

    @property
    def services(self) -> Services:
        """The server's services, which the site holds."""
        return self.site.services

    @property
    def server_url(self) -> str:
        """The address of this server that clients are given, as the browser has asked for it."""
        return str(self.request.base_url).rstrip("/") + self.site.base

    @property
    def actor(self) -> str:
        """Who acts, for the ledger."""
        return actor(self.site, self.holder) if self.holder else self.site.identity.name

    def page(self, template: str, status: int = 200, **context: Any) -> Response:
        """A page of a template, with the session's cookie where it is to be sent again."""
        html = self.site.templates.get_template(template).render(
            holder=self.holder,
            home=self.site.identity.home,
            allowed={act.name for act in Act if self.holder and self.holder.may(act)},
            form_token=partial(self.site.sessions.form_token, self.session),
            path=self.request.url.path,
            query=self.request.query_params,
            **context,
        )
        return self.keep(HTMLResponse(html, status))

    async def at_its_turn(self, make: Callable[[], Response]) -> Response:
        """A page for which something is planned: made when its holder's turn among all free work
        comes."""
        owner = self.holder.id if self.holder else self.site.identity.name
        return await free_work(self.services.settings).run(owner, self.request, make)

    def redirect(self, path: str) -> Response:
        """To another page, after a form: reloading it does nothing twice."""
        return self.keep(RedirectResponse(path, 303))

    def keep(self, response: Response) -> Response:
        """Sends the session's cookie again where that is due."""
        fresh = self.site.sessions.refreshed(self.session)
        if fresh is not None:
            set_cookie(self.request, response, self.site.sessions.seal(fresh))
        return response


def actor(site: Site, holder: Principal) -> str:
    """Somebody who acts on a page, for the ledger."""
    return f"{site.identity.name}:{holder.name}"


def site_of(request: Request) -> Site:
    """The site of a request's path."""
    return cast(Site, request.app.state.sites[request.url.path.split("/", 2)[1]])


def current_session(request: Request) -> Session | None:
    """The session that the cookie seals, if it has not ended."""
    sealed = cookie(request, cookie_name(request))
    return None if sealed is None else site_of(request).sessions.open(sealed)


def signed_in(request: Request) -> Visit:
    """The visit of somebody who has signed in. Raises SignInNeeded, too where the session was ended
    or the key revoked since, or the roles are none of the site's any more; RateLimited."""
    site, session = site_of(request), current_session(request)
    holder = None
    if session is not None and session.is_signed_in:
        holder = site.services.sign_ins.holder(session.id)
    if session is None or holder is None or not holder.may(site.identity.act):
        raise SignInNeeded(ended=cookie(request, cookie_name(request)) is not None)
    wait = 0.0 if site.rates is None else site.rates.wait(holder.proof)
    if wait > 0:
        raise RateLimited(
            f"You have asked too often; wait {ceil(wait)} s, then ask again.", ceil(wait)
        )
    return Visit(site, request, session, holder)


Fields = Annotated[Mapping[str, str], Depends(read_form)]
FormReader = Callable[[Request], Coroutine[Any, Any, Mapping[str, str]]]


@dataclass(frozen=True, slots=True)
class SignedFor:
    """The visit of somebody who may do `act`. Raises SignInNeeded, WrongRole."""

    act: Act

    def __call__(self, request: Request) -> Visit:
        visit = signed_in(request)
        cast(Principal, visit.holder).require(self.act)
        return visit


def posted_for(act: Act, read: FormReader = read_form) -> Callable[..., Visit]:
    """The form of somebody who may do `act`, sent by a page of this session, once. Raises
    SignInNeeded, WrongRole, Outdated, or Conflict for a form that was sent before: of many at once,
    one goes through."""

    def posted(
        visit: Annotated[Visit, Depends(SignedFor(act))],
        fields: Annotated[Mapping[str, str], Depends(read)],
    ) -> Visit:
        return taken_once(visit, fields)

    return posted


def taken_once(visit: Visit, fields: Mapping[str, str]) -> Visit:
    """The visit with the fields of its form. Raises Outdated, Conflict."""
    check_origin(visit.request, fields, visit.session)
    token = digest(fields["form_token"])
    if not visit.services.form_tokens.use(token, LONGEST_SECONDS + IDLE_SECONDS):
        raise Conflict(_SENT_TWICE)
    return Visit(visit.site, visit.request, visit.session, visit.holder, fields)


def posted_again(act: Act, read: FormReader = read_form) -> Callable[..., Visit]:
    """As `posted_for`, for a form that does the same thing once however often it is sent: by an
    idempotency key that is made of its token. Raises SignInNeeded, WrongRole, Outdated."""

    def posted(
        visit: Annotated[Visit, Depends(SignedFor(act))],
        fields: Annotated[Mapping[str, str], Depends(read)],
    ) -> Visit:
        check_origin(visit.request, fields, visit.session)
        return Visit(visit.site, visit.request, visit.session, visit.holder, fields)

    return posted


def check_origin(request: Request, fields: Mapping[str, str], session: Session) -> None:
    """Raises Outdated unless the form carries the session's token and comes from this site."""
    sessions = site_of(request).sessions
    origin = request.headers.get("origin")
    elsewhere = request.headers.get("sec-fetch-site", "same-origin") != "same-origin"
    host, shown = request.headers.get("host", ""), urlsplit(origin or "").netloc
    if origin is not None and shown != host:
        if shown and not elsewhere:
            raise Outdated(_ANOTHER_HOST.format(shown[:LONGEST_HOST], host[:LONGEST_HOST]))
        elsewhere = True
    if elsewhere or not sessions.is_form_token(session, fields.get("form_token", "")):
        raise Outdated(_OUTDATED)


def to_sign_in(request: Request, needed: SignInNeeded) -> Response:
    """To the sign-in page, and from there back; a part of a page sends the whole page there."""
    is_part = "hx-request" in request.headers
    identity = site_of(request).identity
    path = identity.home if is_part or request.method != "GET" else request.url.path
    place = f"{identity.sign_in}?next={quote(path)}" + ("&ended=1" if needed.ended else "")
    if is_part:
        return Response(status_code=204, headers={"HX-Redirect": place})
    return RedirectResponse(place, 303)


def cookie_name(request: Request) -> str:
    """The name with the prefix that lets no other host or port set it, where the browser allows
    that; with that of cookies for TLS only where the cookie has a path (RFC 6265bis, 4.1.3)."""
    site = site_of(request)
    prefix = "__Secure-" if site.base else "__Host-"
    return f"{prefix}{site.identity.cookie}" if is_secure(request) else site.identity.cookie


def cookie_path(request: Request) -> str:
    """The path below which browsers send this server's cookies."""
    return f"{site_of(request).base}/"


def set_cookie(request: Request, response: Response, value: str) -> None:
    """Sends the session's cookie, which scripts and other sites cannot use."""
    response.set_cookie(
        cookie_name(request),
        value,
        max_age=LONGEST_SECONDS,
        path=cookie_path(request),
        secure=is_secure(request),
        httponly=True,
        samesite="strict",
    )


def drop_cookie(request: Request, response: Response) -> None:
    """Tells the browser to forget the session's cookie."""
    response.delete_cookie(
        cookie_name(request),
        path=cookie_path(request),
        secure=is_secure(request),
        httponly=True,
        samesite="strict",
    )


def is_in_the_clear(request: Request) -> bool:
    """Whether keys would travel over a network without TLS, as far as can be seen from here.

    A proxy's headers are never read; but browsers send Sec-Fetch-Site over TLS only (and to the
    machine itself), so where it came, the browser's way to the proxy is not in the clear.
    """
    elsewhere = not _is_loopback(request.url.hostname or "")
    return elsewhere and request.url.scheme != "https" and "sec-fetch-site" not in request.headers


def is_secure(request: Request) -> bool:
    """Secure cookies everywhere but at http://127.0.0.1 and the like: behind a proxy that ends TLS
    the server sees http, and the browser speaks TLS."""
    return request.url.scheme == "https" or not _is_loopback(request.url.hostname or "")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
