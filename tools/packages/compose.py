# SPDX-License-Identifier: Apache-2.0
"""What docker-compose.yml says of each service, for who starts it without an engine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from dotenv.variables import parse_variables
from tools.packages.boxes import Mount


@dataclass(frozen=True, slots=True)
class Health:
    """test: a command; None: the image's. disabled: there is none."""

    test: tuple[str, ...] | None
    disabled: bool


@dataclass(frozen=True, slots=True)
class Service:
    """One service. entrypoint, command, user: None where the image's own hold. mounts: with sources
    of this machine.
    """

    name: str
    image: str
    user: str | None
    entrypoint: tuple[str, ...] | None
    command: tuple[str, ...] | None
    environment: dict[str, str]
    mounts: tuple[Mount, ...]
    health: Health
    depends_on: dict[str, str]
    capabilities: tuple[str, ...]
    profiles: tuple[str, ...]
    stop_seconds: float


def services(project: Path, given: Mapping[str, str], volumes: Path) -> dict[str, Service]:
    """Of the compose file in a folder. given: what .env says. volumes: the folder for named
    ones.
    """
    text = (project / "docker-compose.yml").read_text("utf-8")
    document = _interpolated(yaml.safe_load(text), given)
    return {
        name: _service(name, each, project, volumes) for name, each in document["services"].items()
    }


def _interpolated(node: Any, given: Mapping[str, str]) -> Any:
    """`${NAME:-default}` in all texts, as in .env files."""
    if isinstance(node, dict):
        return {key: _interpolated(value, given) for key, value in node.items()}
    if isinstance(node, list):
        return [_interpolated(value, given) for value in node]
    if isinstance(node, str):
        return "".join(atom.resolve(dict(given)) for atom in parse_variables(node))
    return node


def _service(name: str, said: dict[str, Any], project: Path, volumes: Path) -> Service:
    assert said["read_only"] is True, name
    assert said["cap_drop"] == ["ALL"], name
    assert "no-new-privileges:true" in said["security_opt"], name
    memory = [_memory(text) for text in said.get("tmpfs", ())]
    bound = [_bound(text, project, volumes) for text in said.get("volumes", ())]
    depends = said.get("depends_on", {})
    if isinstance(depends, list):
        depends = {each: {"condition": "service_started"} for each in depends}
    return Service(
        name,
        said["image"],
        said.get("user"),
        _words(said, "entrypoint"),
        _words(said, "command"),
        {key: str(value) for key, value in said.get("environment", {}).items()},
        (*memory, *bound),
        _health(said.get("healthcheck", {})),
        {each: condition["condition"] for each, condition in depends.items()},
        tuple(said.get("cap_add", ())),
        tuple(said.get("profiles", ())),
        float(said.get("stop_grace_period", "10s").removesuffix("s")),
    )


def _words(said: Mapping[str, Any], key: str) -> tuple[str, ...] | None:
    words: Sequence[str] | None = said.get(key)
    return None if words is None else tuple(words)


def _memory(text: str) -> Mount:
    target, _, options = text.partition(":")
    return Mount(None, target, writable=True, options=options)


def _bound(text: str, project: Path, volumes: Path) -> Mount:
    source, target, *options = text.split(":")
    place = project / source if source.startswith((".", "/")) else volumes / source
    return Mount(place, target, writable="ro" not in options)


def _health(said: Mapping[str, Any]) -> Health:
    test = said.get("test")
    if test is None:
        return Health(None, disabled=bool(said.get("disable", False)))
    assert test[0] == "CMD", test
    return Health(tuple(test[1:]), disabled=False)
