# SPDX-License-Identifier: Apache-2.0
"""schemathesis over the whole OpenAPI document of a real server, and over the console, with every
role.

No 5xx, no status that is not documented, replies of the documented shape, no route that answers
without the key that it asks for. (Whether data that the document refuses are refused is tested by
test_api_bad_input: the hooks here turn most requests to a data set that there is.)
"""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from secrets import token_hex
from time import monotonic
from typing import Any

import pytest

from reticent_server.domain.roles import STAFF, Role
from reticent_server.pipeline.services import Services
from reticent_server.web.sessions import Sessions
from support.installations.small import Installation, opened, serving
from support.interfaces import schemathesis_hooks
from support.interfaces.console_document import console_document

CHECKS = ("--checks", "all", "--exclude-checks", "negative_data_rejection,positive_data_acceptance")


SHAPES = ("--checks", "not_a_server_error,status_code_conformance,response_schema_conformance")
ONLY_ERRORS = ("--checks", "not_a_server_error")
"""Of pages, whose replies no document describes."""

STAFF_ROLES = sorted(STAFF)
CALLS = int(os.environ.get("AUDIT_CALLS", "100000"))
"""In all, of the long fuzzing: as many for each role, and for nobody, on the API and on the
console.
"""


def run(
    installation: Installation,
    *options: str,
    seed: int = 7,
    checks: tuple[str, ...] = CHECKS,
    callers: Sequence[Mapping[str, Any]] = (),
    document: Path | None = None,
) -> None:
    """One run of schemathesis over a server, for which nothing may fail.

    callers: who takes turns (support.interfaces.schemathesis_hooks). document: of what is asked;
    None: the API's own.
    """
    hooks = Path(schemathesis_hooks.__file__)
    environment = os.environ | {
        "SCHEMATHESIS_HOOKS": hooks.stem,
        "PYTHONPATH": str(hooks.parent),
        "PYTHONWARNINGS": "ignore",
        "FUZZ_CALLERS": json.dumps(callers),
        "FUZZ_SECRETS": str(installation.settings.secrets_file),
    }
    with serving(installation, cancels_per_minute=10**9) as server:
        asked = [f"{server.url}/openapi.json"]
        if document is not None:
            asked = [str(document), "--url", server.url]
        done = subprocess.run(
            [
                *(
                    sys.executable,
                    "-c",
                    "from schemathesis.cli import schemathesis; schemathesis()",
                    "run",
                ),
                *(*asked, "--no-color", "--seed", str(seed)),
                *checks,
                *options,
            ],
            cwd=installation.directory,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    assert not {status for status in statuses(installation) if status >= 500}


def statuses(installation: Installation) -> Counter[int]:
    """How often the servers of an installation have replied with which status, by their log."""
    text = (installation.directory / "serve.log").read_text()
    assert "unexpected_error" not in text
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return Counter(line["status"] for line in lines if line["event"] == "request")


def key_of(services: Services, role: str) -> str:
    """The key of somebody new with that role, an analyst's without a budget or one of the
    staff's.
    """
    if role == Role.ANALYST:
        return services.access.add_analyst(f"new-{token_hex(4)}", by="t")[1]
    return services.access.add_curator(f"new-{token_hex(4)}", frozenset({Role(role)}), by="t")


def caller(key: str) -> dict[str, Any]:
    """Who asks the API with a key."""
    return {"headers": {"Authorization": f"Bearer {key}"}, "session": None}


def visitor(services: Services, role: str) -> dict[str, Any]:
    """Somebody of the staff in the console, in a session that they may not even have begun
    themselves.
    """
    holder = services.access.authenticate(key_of(services, role))
    assert holder is not None
    session = services.sign_ins.begin(holder, by="t")
    sessions = Sessions(services.peppers, services.clock)
    cookie = sessions.seal(sessions.new(session))
    return {"headers": {"Cookie": f"reticent={cookie}"}, "session": session}


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    path = tmp_path / "console.json"
    path.write_text(json.dumps(console_document()))
    return path


def header(key: str | None) -> tuple[str, ...]:
    return () if key is None else ("--header", f"Authorization: Bearer {key}")


@pytest.mark.slow
def test_a_few_requests_of_every_kind(installation: Installation) -> None:
    key = header(installation.keys["ana"])
    run(installation, "--phases", "fuzzing", "--max-examples", "2", *key)


@pytest.mark.audit
@pytest.mark.parametrize("with_key", [True, False])
def test_every_phase(installation: Installation, with_key: bool) -> None:
    key = header(installation.keys["ana"] if with_key else None)
    run(installation, "--continue-on-failure", "--max-examples", "300", *key)


@pytest.mark.audit
def test_a_few_requests_of_every_role(installation: Installation) -> None:
    with opened(installation.settings) as services:
        callers = [caller(key_of(services, role)) for role in STAFF_ROLES]
    callers += [caller(installation.keys["ana"]), {"headers": {}, "session": None}]
    options = ("--phases", "fuzzing", "--max-examples", "4")
    run(installation, *options, checks=SHAPES, callers=callers)
    assert {200, 401, 403} <= set(statuses(installation))


@pytest.mark.audit
def test_a_few_forms_and_pages_of_every_role(installation: Installation, pages: Path) -> None:
    with opened(installation.settings) as services:
        callers = [visitor(services, role) for role in STAFF_ROLES]
    options = ("--phases", "fuzzing", "--max-examples", "6")
    run(installation, *options, checks=ONLY_ERRORS, callers=callers, document=pages)
    # Pages were shown, forms were carried out, roles were refused, and the operator was let in
    # nowhere.
    assert {200, 303, 403, 422} <= set(statuses(installation))


@pytest.mark.audit
@pytest.mark.parametrize("role", ["analyst", *STAFF_ROLES, "nobody"])
def test_a_hundred_thousand_calls(installation: Installation, role: str) -> None:
    """Of every role, none of which is replied to with 5xx; afterwards the ledger is in order."""
    with opened(installation.settings) as services:
        keys = {"analyst": installation.keys["ana"], "nobody": None}
        key = keys[role] if role in keys else key_of(services, role)
    asking = [] if key is None else [caller(key)]
    calls(installation, role, lambda _: asking, SHAPES, None)


@pytest.mark.audit
@pytest.mark.parametrize("role", [*STAFF_ROLES, "nobody"])
def test_a_hundred_thousand_pages(installation: Installation, pages: Path, role: str) -> None:
    """As above, on the console's pages and forms. A session lasts for one run."""

    def visitors(services: Services) -> list[dict[str, Any]]:
        return [] if role == "nobody" else [visitor(services, role)]

    calls(installation, role, visitors, ONLY_ERRORS, pages)


def calls(
    installation: Installation,
    role: str,
    callers: Callable[[Services], Sequence[Mapping[str, Any]]],
    checks: tuple[str, ...],
    document: Path | None,
) -> None:
    """So many calls as are one part of all."""
    parts, seed, began = 2 * len(STAFF_ROLES) + 3, 0, monotonic()
    options = (
        "--phases",
        "fuzzing",
        "--continue-on-failure",
        "--max-examples",
        "100",
        "--generation-database",
        "none",
    )
    while seed == 0 or statuses(installation).total() < CALLS / parts:
        with opened(installation.settings) as services:
            asking = callers(services)
        run(installation, *options, seed=seed, checks=checks, callers=asking, document=document)
        seed += 1
    found, seconds = statuses(installation), monotonic() - began
    place = "API" if document is None else "console"
    print(f"{place}, {role}: {found.total()} calls in {seconds:.0f} s, {dict(found)}")
    with opened(installation.settings) as services:
        assert services.ledger.verify() == []
