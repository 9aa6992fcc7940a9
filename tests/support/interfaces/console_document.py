# SPDX-License-Identifier: Apache-2.0
"""The console's routes as an OpenAPI document, which it does not publish: made from its routers and
templates.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fastapi.routing import APIRoute

from reticent_server.console import application
from reticent_server.web import site

QUERIES = ("q", "before", "account", "done", "next", "ended")
_LEFT_OUT = {"/console/sign-out", "/console/static/{name}"}
"""It would end the session that every other request needs, or needs no session."""

TEXT = {"type": "string", "maxLength": 40}


def console_document() -> dict[str, Any]:
    """Every route but the one to sign out; any reply is allowed, so that only 5xx is a failure."""
    paths: dict[str, Any] = {}
    for route in _routes():
        for method in route.methods or ():
            paths.setdefault(route.path, {})[method.lower()] = _operation(route.path, method)
    info = {"title": "Console", "version": "0"}
    return {"openapi": "3.1.0", "info": info, "paths": paths}


def _routes() -> Iterator[APIRoute]:
    for part in application.PARTS:
        for route in part.routes:
            if isinstance(route, APIRoute) and route.path not in _LEFT_OUT:
                yield route


def _operation(path: str, method: str) -> dict[str, Any]:
    names = re.findall(r"\{(\w+)\}", path)
    given = [
        {"name": n, "in": "path", "required": True, "schema": TEXT | {"minLength": 1}}
        for n in names
    ]
    if method == "GET":
        given += [{"name": n, "in": "query", "required": False, "schema": TEXT} for n in QUERIES]
    operation: dict[str, Any] = {
        "parameters": given,
        "responses": {"default": {"description": "A page."}},
    }
    if method == "POST":
        operation["requestBody"] = {"required": True, "content": {_FORM: {"schema": _fields()}}}
    return operation


_FORM = "application/x-www-form-urlencoded"


def _fields() -> dict[str, Any]:
    """Texts and numbers in every field that some form has."""
    folders = [Path(str(module.__file__)).parent / "templates" for module in (application, site)]
    texts = [file.read_text() for folder in folders for file in folder.glob("*.html")]
    names = sorted({n for text in texts for n in re.findall(r' name="([a-z_]+)"', text)})
    value = {"anyOf": [TEXT, {"enum": ["yes", "0.5", "1e-6", "zcdp", "basic", "2999-12-31"]}]}
    return {
        "type": "object",
        "properties": dict.fromkeys(names, value) | {"form_token": {"const": "x"}},
        "required": ["form_token"],
        "additionalProperties": False,
    }
