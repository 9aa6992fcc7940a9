# SPDX-License-Identifier: Apache-2.0
"""Errors → application/problem+json (RFC 9457); constant words and public facts, never the
input.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException
from starlette.routing import Match

from reticent_server.errors import CuratorError, QueueFull, RateLimited, ReticentError
from reticent_server.events import EventLogger
from reticent_server.web.validation import explained

log = EventLogger(__name__)

MEDIA_TYPE = "application/problem+json"

_DESCRIPTIONS = {
    401: (
        "No valid key or token; or `weak_sign_in`: the token says too little about how its "
        "holder signed in."
    ),
    403: (
        "`budget_exhausted`, with what remains, `policy`, or `wrong_role`: the key is not an "
        "analyst's. Nothing was charged."
    ),
    404: "Absent, or not the caller's: the two are the same reply.",
    405: "The path has no such method.",
    409: "`idempotency_conflict`: the key was used for another request.",
    413: "The body is too large.",
    422: "`invalid_request`, `invalid_query`, `invalid_formula` or `invalid_privacy`. "
    "Nothing was charged.",
    408: "The body did not come in time.",
    431: "The head of the request, or its cookies, are too large.",
    429: (
        "`rate_limited`: the key has asked too often, or too many of its plans or releases wait; "
        "Retry-After says how long to wait."
    ),
    500: "Unexpected; the text is always the same.",
    503: "A database does not answer, or the release is still being computed: send it again, "
    "with the same Idempotency-Key.",
}


class Problem(BaseModel):
    """RFC 9457. `code` is stable; `remaining` only where a budget is exhausted."""

    model_config = ConfigDict(extra="forbid")

    type: str
    title: str
    status: int
    detail: str
    code: str
    remaining: dict[str, float] | None = None


def problem(
    status: int,
    code: str,
    title: str,
    detail: str,
    *,
    remaining: Mapping[str, float] | None = None,
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """One problem as a response."""
    content: dict[str, Any] = {
        "type": f"urn:reticent:problem:{code}",
        "title": title,
        "status": status,
        "detail": detail,
        "code": code,
    }
    if remaining:
        content["remaining"] = dict(remaining)
    return JSONResponse(content, status, headers=headers, media_type=MEDIA_TYPE)


def unexpected() -> JSONResponse:
    """The constant reply to what nobody foresaw."""
    return problem(500, "internal", "Internal error", "The server met an unexpected condition.")


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The OpenAPI responses of a route that can fail with these statuses."""
    return {
        status: {
            "description": _DESCRIPTIONS[status],
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        for status in statuses
    }


def install_handlers(app: FastAPI) -> None:
    """Puts every error of the application in this form."""
    app.add_exception_handler(ReticentError, _reticent)
    app.add_exception_handler(RequestValidationError, _validation)
    app.add_exception_handler(HTTPException, _http)


def _reticent(_request: Request, error: Exception) -> JSONResponse:
    if isinstance(error, CuratorError) or not isinstance(error, ReticentError):
        log.error("unexpected_error", error=type(error).__name__)
        return unexpected()  # a curator's text may quote a cell
    headers = None
    if error.status == HTTPStatus.UNAUTHORIZED:
        headers = {"WWW-Authenticate": "Bearer"}
    if isinstance(error, RateLimited | QueueFull):
        headers = {"Retry-After": str(error.retry_after)}
    remaining = getattr(error, "remaining", None)
    return problem(
        error.status, error.code, error.title, error.detail, remaining=remaining, headers=headers
    )


def _validation(_request: Request, error: Exception) -> JSONResponse:
    explanation = explained(error.errors() if isinstance(error, RequestValidationError) else ())
    return problem(explanation.status, explanation.code, explanation.title, explanation.detail)


def _http(request: Request, error: Exception) -> JSONResponse:
    """The router's own 404 and 405."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    if status == HTTPStatus.NOT_FOUND:
        return problem(404, "not_found", "Not found", "There is nothing at this path.")
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        return problem(
            405,
            "method_not_allowed",
            "Method not allowed",
            "This path does not have that method.",
            headers={"Allow": ", ".join(_methods(request))},
        )
    return unexpected()


def _methods(request: Request) -> list[str]:
    """All methods of a path: the router names those of the first route only."""
    routes = (
        route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE
    )
    return sorted({method for route in routes for method in getattr(route, "methods", None) or ()})
