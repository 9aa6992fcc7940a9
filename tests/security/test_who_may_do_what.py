# SPDX-License-Identifier: Apache-2.0
"""Every route and every command, by a holder of every role: what is refused is what the table
says.
"""

import asyncio
import re
from collections.abc import Callable, Coroutine, Iterable, Iterator
from dataclasses import replace
from functools import wraps
from pathlib import Path
from shutil import copytree
from typing import Any

import httpx
import pytest
import typer
from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.routing import Route

from reticent_server.api.curator import make_curator_application
from reticent_server.app import create_app
from reticent_server.cli import COMMANDS, root
from reticent_server.cli.common import ACTS
from reticent_server.domain.roles import MAY, Act, Role
from reticent_server.pipeline.services import Services
from support.installations.small import Installation, opened

OPEN = {
    "GET /healthz",
    "GET /readyz",
    "GET /openapi.json",
    "GET /console/sign-in",
    "POST /console/sign-in",
    "GET /console/oidc/sign-in",
    "GET /console/oidc/callback",
    "GET /console/static/{name}",
    "GET /console/{path:path}",
    "GET /workbench/sign-in",
    "POST /workbench/sign-in",
    "GET /workbench/oidc/sign-in",
    "GET /workbench/oidc/callback",
    "GET /workbench/static/{name}",
    "GET /workbench/{path:path}",
    "GET /verify",
    "GET /",
    "POST /verify",
    "GET /verify/static/{name}",
}
"""Routes that ask for nobody: they tell nothing, or are the way in."""

WITHOUT_INSTALLATION = {"dataset schema", "demo"}
"""Commands that touch no installation: a draft from a file, and one that makes its own."""

PAGES = ("/console", "/workbench", "/verify")
"""Where routes are pages, for sessions and not for keys in a header."""

PARTS = {
    "name": "people",
    "form": "python",
    "release_id": "rel_x",
    "file_id": "0" * 32,
    "request_id": "rq_x",
    "proposal_id": "ap_x",
}


def in_a_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @wraps(test)
    def run(**fixtures: Any) -> None:
        asyncio.run(test(**fixtures))

    return run


def acts_of(dependant: Dependant) -> set[Act]:
    """What a route asks its caller to be allowed to do."""
    own = {dependant.call.act} if hasattr(dependant.call, "act") else set()
    return own.union(*(acts_of(part) for part in dependant.dependencies))


def routes(app: FastAPI) -> Iterator[tuple[str, str, set[Act]]]:
    """(method, path, acts) of every route; fails at one of a kind that this walk does not know."""
    for route in flat(app.routes):
        assert isinstance(route, Route | APIRoute), route
        acts = acts_of(route.dependant) if isinstance(route, APIRoute) else set()
        for method in sorted((route.methods or {"ANY"}) - {"HEAD"}):
            yield method, route.path, acts


def flat(nested: Iterable[Any]) -> Iterator[Any]:
    """Routes, also of routers that FastAPI keeps as they were included."""
    for route in nested:
        included = getattr(route, "original_router", None)
        if included is None:
            yield route
        else:
            yield from flat(included.routes)


@pytest.fixture(scope="module")
def keys(
    installation_template: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Installation, Services, dict[Role, str]]]:

    directory = tmp_path_factory.mktemp("roles") / "installation"
    copytree(installation_template.directory, directory)
    installation = replace(installation_template, directory=directory)
    changed = {
        "sign_ins_per_minute": 10**9,
        "oidc_issuer": "https://id.invalid",
        "oidc_client_id": "reticent",
        "oidc_redirect_url": "https://desk.invalid/console/oidc/callback",
    }
    with opened(installation.settings.model_copy(update=changed)) as made:
        staff = [role for role in Role if role is not Role.ANALYST]
        add = made.access.add_curator
        held = {role: add(f"the-{role}", frozenset({role}), by="t") for role in staff}
        yield installation, made, held | {Role.ANALYST: installation.keys["ana"]}


@pytest.fixture(scope="module")
def applications(keys: Any) -> tuple[FastAPI, FastAPI]:
    """That of the analysts' routes, and the curators'."""
    return create_app(keys[1], console=False), make_curator_application(keys[1])


def test_every_route_asks_for_one_act_or_is_open(keys: Any) -> None:
    _, services, _ = keys
    found = {
        f"{method} {path}": acts
        for app in (create_app(services), make_curator_application(services))
        for method, path, acts in routes(app)
    }
    assert {name for name, acts in found.items() if not acts} == OPEN
    assert all(len(acts) == 1 for name, acts in found.items() if name not in OPEN)
    changing = {n for n in found if n.startswith("POST /console") and n not in OPEN}
    looking = {n for n in changing if found[n] == {Act.LOOK}}
    assert looking == {"POST /console/sign-out"}


@pytest.mark.parametrize("role", Role)
@in_a_loop
async def test_routes_of_the_api(keys: Any, applications: Any, role: Role) -> None:
    _, _, held = keys
    asked = 0
    for app in applications:
        transport = httpx.ASGITransport(app)
        headers = {"Authorization": f"Bearer {held[role]}"}
        async with httpx.AsyncClient(
            transport=transport, base_url="http://test", headers=headers
        ) as web:
            for method, path, acts in routes(app):
                if path.startswith(PAGES):
                    continue
                body = {"json": {}} if method == "POST" else {}
                reply = await web.request(method, path.format(**PARTS), **body)
                refused = reply.status_code == 403 and reply.json()["code"] == "wrong_role"
                assert refused == any(role not in MAY[act] for act in acts), (method, path)
                asked += 1
    assert asked > 10


@pytest.mark.sample(6)
@pytest.mark.parametrize(("site", "inside"), [("/console", Act.LOOK), ("/workbench", Act.ASK)])
@pytest.mark.parametrize("role", Role)
@in_a_loop
async def test_routes_of_pages(keys: Any, role: Role, site: str, inside: Act) -> None:
    """A session is begun as by signing in, then every page and form is asked for. A form
    that is allowed is refused for its token, so nothing is changed."""
    _, services, held = keys
    app = create_app(services)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as web:
        page = await web.get(f"{site}/sign-in")
        token = re.search(r'name="form_token" value="([0-9a-f]{96})"', page.text)
        assert token
        fields = {"form_token": token[1], "key": held[role]}
        entered = (await web.post(f"{site}/sign-in", data=fields)).status_code == 303
        assert entered == (role in MAY[inside])
        for method, path, acts in routes(app):
            if not path.startswith(site) or not acts:
                continue
            reply = await web.request(method, path.format(**PARTS | {"name": "ana"}))
            refused = reply.status_code == 403 and "This key may not" in reply.text
            if not entered:
                assert reply.status_code == 303, path
                continue
            assert refused == any(role not in MAY[act] for act in acts), (method, path)
            assert reply.status_code in ({200, 403, 404, 422} if method == "GET" else {403, 422}), (
                path
            )


@pytest.mark.parametrize("app", [create_app, make_curator_application])
@in_a_loop
async def test_without_a_key_nothing_is_answered(keys: Any, app: Callable[..., FastAPI]) -> None:
    made = app(keys[1])
    transport = httpx.ASGITransport(made)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as web:
        for method, path, acts in routes(made):
            if acts:
                is_page = path.startswith(PAGES)
                body = {"json": {}} if method == "POST" and not is_page else {}
                reply = await web.request(method, path.format(**PARTS), **body)
                expected = 303 if is_page else 401
                assert reply.status_code == expected, (method, path)


def commands() -> Iterator[tuple[str, Callable[[], object], Act | None]]:
    for name, command in COMMANDS.items():
        app = root([name])
        groups = [g for g in app.registered_groups if g.name == name]
        found = groups[0].typer_instance if command.group else app
        assert found is not None
        for each in found.registered_commands:
            function = each.callback
            assert function is not None
            if not command.group and each.name != name:
                continue
            label = name if not command.group else f"{name} {each.name or function.__name__}"
            yield label, function, ACTS[f"{function.__module__}.{function.__name__}"]


def test_commands_without_an_act_are_known() -> None:
    assert {name for name, _, act in commands() if act is None} == WITHOUT_INSTALLATION


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("role", Role)
def test_commands(
    keys: Any,
    role: Role,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The act is asked for before the first argument is looked at, and none is given here."""
    installation, _, held = keys
    for name, value in installation.environment.items():
        if name.startswith("RETICENT_"):
            monkeypatch.setenv(name, value)
    (tmp_path / "key").write_text(held[role] + "\n")
    monkeypatch.setenv("RETICENT_KEY_FILE", str(tmp_path / "key"))
    for label, function, act in commands():
        if act is None:
            continue
        try:
            function()
            refused = False
        except TypeError as error:
            refused = "required" not in str(error)
        except typer.Exit:
            refused = "may not" in capsys.readouterr().err
        assert refused == (role not in MAY[act]), label
    capsys.readouterr()
