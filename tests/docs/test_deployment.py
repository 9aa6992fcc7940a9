"""The deployment files agree with the program: commands, settings, metrics, and how much a container may do."""

import json
import re
import shlex
from typing import Any

import pytest
import yaml

from reticent_server.api.curator import make_curator_application
from reticent_server.pipeline.services import Services
from reticent_server.settings import PREFIX, Settings
from support_docs import ROOT
from support_session import Session

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = [name for name, service in SERVICES.items() if service["image"].startswith("reticent")]
DOCKERFILE = (ROOT / "deploy/Dockerfile").read_text("utf-8")
_DEFAULT = re.compile(r"\$\{\w+(?::-([^}]*))?[^}]*\}")


def interpolated(text: str) -> str:
    return _DEFAULT.sub(lambda found: found[1] or "x", text)


def commands() -> list[list[str]]:
    """What containers run with this project's program."""
    image = json.loads(re.findall(r"^CMD (\[.*\])$", DOCKERFILE, flags=re.MULTILINE)[-1])
    services = [SERVICES[name]["command"] for name in OURS if SERVICES[name]["command"]]
    return [image, *services]


def test_every_command_is_understood() -> None:
    assert len(commands()) == 3
    for words in commands():
        given = [interpolated(word) for word in words]
        assert Session()._run([*given, "--help"]), shlex.join(given)


def test_every_setting_is_one() -> None:
    known = {PREFIX + name.upper() for name in Settings.model_fields}
    for name in OURS:
        assert set(SERVICES[name].get("environment", {})) <= known


@pytest.mark.parametrize("name", OURS)
def test_a_container_of_ours_may_do_little(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["networks"] == ["inside"]
    assert "ports" not in service
    assert COMPOSE["networks"]["inside"]["internal"] is True


def test_the_image_runs_as_nobody_in_particular_and_says_whether_it_lives() -> None:
    last = DOCKERFILE.split("FROM ")[-1]
    user = re.search(r"^USER (\w+)$", last, flags=re.MULTILINE)
    assert user is not None
    assert user[1] != "root"
    assert "/readyz" in last
    kept = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    assert kept[0] == "*"
    assert all(f"!{path}" in kept for path in ("server", "client", "migrations", "pyproject.toml"))


def test_only_the_machine_itself_reaches_the_curator_s_ports() -> None:
    ports = {port for service in SERVICES.values() for port in service.get("ports", ())}
    assert {port for port in ports if not port.startswith("127.0.0.1:")} == {"443:443"}


def test_the_console_is_reached_as_localhost_whatever_the_server_s_name() -> None:
    """As the guide says, also through a tunnel; a site of another name would refuse that handshake."""
    text = (ROOT / "deploy/Caddyfile").read_text("utf-8")
    sites = dict(re.findall(r"^(\S+) \{\n(.*?)^\}", text, flags=re.MULTILINE | re.DOTALL))
    analysts, curators = (
        sites.pop("{$RETICENT_HOST:localhost}"),
        sites.pop("https://localhost:8443"),
    )
    assert not sites
    assert "tls internal" in curators
    assert ("reverse_proxy server:8000" in analysts, "9464" in analysts) == (True, False)
    assert ("reverse_proxy server:9464" in curators, "8000" in curators) == (True, False)
    assert "https://localhost:8443/console" in (ROOT / "docs/how-to/deploy.md").read_text("utf-8")


def test_files_that_are_mounted_exist() -> None:
    for service in SERVICES.values():
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            if source.startswith("./") and "." in source[2:]:
                assert (ROOT / source).is_file(), source


def test_alerts_watch_metrics_that_there_are(services: Services) -> None:
    application = make_curator_application(services)
    names = {
        sample.name
        for family in application.state.registry.collect()
        for sample in [*family.samples, family]
    }
    alerts = yaml.safe_load((ROOT / "deploy/alerts.yml").read_text("utf-8"))
    rules = [rule["expr"] for group in alerts["groups"] for rule in group["rules"]]
    for expression in rules:
        for metric in re.findall(r"reticent_\w+", expression):
            assert metric in names or metric.removesuffix("_total") in names, metric
