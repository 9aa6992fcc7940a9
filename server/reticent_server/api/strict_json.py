# SPDX-License-Identifier: Apache-2.0
"""JSON bodies, strictly: UTF-8, no key twice, a bounded depth."""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from reticent_server.domain.strict_json import parse

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class StrictRequest(Request):
    """A request whose malformed body reads as null, which no schema accepts.

    So that the caller's key is checked before the body is spoken about.
    """

    async def json(self) -> Any:
        """The decoded body; None where it is not strict JSON, which no model of a request
        allows."""
        try:
            return parse(await self.body())
        except (ValueError, RecursionError):
            return None


class StrictRoute(APIRoute):
    """A route that reads its body strictly."""

    def get_route_handler(self) -> Handler:
        """FastAPI's handler, which sees a StrictRequest."""
        handler = super().get_route_handler()

        async def strict(request: Request) -> Response:
            return await handler(StrictRequest(request.scope, request.receive))

        return strict
