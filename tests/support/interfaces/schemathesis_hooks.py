# SPDX-License-Identifier: Apache-2.0
"""Hooks of schemathesis: who asks, about what there is, from which session.

FUZZ_CALLERS, JSON: a list of {"headers": {…}, "session": id or null}. Requests take turns over it.
A caller with a session sends forms with a token of that session, else nothing behind the token
would be reached. FUZZ_SECRETS: the secrets file of the installation.
"""

import json
import os
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import schemathesis

from reticent_server.access.secret_places import KeptPeppers, SecretsFile
from reticent_server.domain.clock import SystemClock
from reticent_server.web.sessions import Session, Sessions

NAMES = {"dataset": "people", "name": "ana", "account": "population:people", "member": "bob"}
"""What there is, in place of three of four generated names."""

_turn = count()


@schemathesis.hook
def map_body(_context: Any, body: Any) -> Any:
    return _known(body) if isinstance(body, dict) else body


@schemathesis.hook
def map_path_parameters(_context: Any, parameters: Any) -> Any:
    return _known(parameters) if isinstance(parameters, dict) else parameters


def _known(fields: dict[str, Any]) -> dict[str, Any]:
    for field, name in NAMES.items():
        if isinstance(fields.get(field), str) and len(fields[field]) % 4:
            fields[field] = name
    return fields


@schemathesis.hook
def before_call(_context: Any, case: Any, _kwargs: Any) -> None:
    callers = _callers()
    if not callers:
        return
    caller = callers[next(_turn) % len(callers)]
    for name, value in caller["headers"].items():
        case.headers[name] = value
    if caller["session"] is not None and isinstance(case.body, dict) and "form_token" in case.body:
        session = Session(caller["session"], True, 0, 0)
        case.body["form_token"] = _sessions().form_token(session)


@cache
def _callers() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(os.environ.get("FUZZ_CALLERS", "[]"))
    return found


@cache
def _sessions() -> Sessions:
    return Sessions(KeptPeppers(SecretsFile(Path(os.environ["FUZZ_SECRETS"]))), SystemClock())
