# SPDX-License-Identifier: Apache-2.0
"""JSON bodies, strictly: UTF-8, no key twice, a bounded depth.

NaN and Infinity pass here, because every number of a schema refuses them, by the name of its field.
"""

import json
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

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


def parse(body: bytes) -> Any:
    """The value of a JSON text. Raises ValueError or RecursionError."""
    return json.loads(body.decode("utf-8"), object_pairs_hook=_object)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a key twice")
    return members
