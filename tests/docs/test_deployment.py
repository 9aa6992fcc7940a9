# SPDX-License-Identifier: Apache-2.0
"""The deployment files agree with the program: commands, settings, metrics, and how much a
container may do.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from reticent_server.api.curator import make_curator_application
from reticent_server.pipeline.services import Services
from reticent_server.settings import PREFIX, Settings
from support.documents.code_blocks import ROOT
from support.documents.session import Session

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = [name for name, service in SERVICES.items() if "reticent" in service["image"]]
DOCKERFILE = (ROOT / "deploy/Dockerfile").read_text("utf-8")
USERS = {"db": 70, "init": 10001, "server": 10001, "curator": 10001, "prometheus": 65534}
"""Who reads the passwords in a container, by its service."""

_DEFAULT = re.compile(r"\$\{\w+(?::-([^}]*))?[^}]*\}")


def interpolated(text: str) -> str:
    return _DEFAULT.sub(lambda found: found[1] or "x", text)


def mounts(name: str) -> dict[str, tuple[str, bool]]:
    """By path in the container: what is mounted there, and whether it can be written."""
    found = {}
    for volume in SERVICES[name].get("volumes", ()):
        source, target, *options = interpolated(volume).split(":")
        found[target] = source, "ro" not in options
    return found


def commands() -> list[list[str]]:
    """What containers run with this project's program."""
    image = json.loads(re.findall(r"^CMD (\[.*\])$", DOCKERFILE, flags=re.MULTILINE)[-1])
    services = [SERVICES[name]["command"] for name in OURS if SERVICES[name]["command"]]
    return [image, *services]


def test_every_command_is_understood() -> None:
    assert len(commands()) == 4
    for words in commands():
        given = [interpolated(word) for word in words]
        assert Session()._run([*given, "--help"]), shlex.join(given)


def test_every_setting_is_one() -> None:
    known = {PREFIX + name.upper() for name in Settings.model_fields}
    for name in OURS:
        assert set(SERVICES[name].get("environment", {})) - {"PGPASSFILE"} <= known


@pytest.mark.parametrize("name", SERVICES)
def test_a_container_may_do_little(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service.get("cap_add", []) == (["NET_BIND_SERVICE"] if name == "proxy" else [])
    assert service["security_opt"] == ["no-new-privileges:true"]
    limits = service["deploy"]["resources"]["limits"]
    assert set(limits) == {"cpus", "memory", "pids"}
    assert all(re.fullmatch(r"[\d.]+[mg]?", interpolated(str(v))) for v in limits.values())
    assert service["logging"]["options"].keys() == {"max-size", "max-file"}
    for text in service.get("tmpfs", ()):
        assert ":size=" in text, "memory that is not limited"


def test_networks_join_only_those_who_must_talk() -> None:
    joined = {name: set(service["networks"]) for name, service in SERVICES.items()}
    assert joined == {
        "db": {"data"},
        "init": {"data"},
        "curator": {"data"},
        "server": {"data", "web", "watch", "cluster"},
        "proxy": {"web", "outside"},
        "prometheus": {"watch", "outside"},
        "scheduler": {"cluster"},
        "worker": {"cluster"},
    }
    for name, network in COMPOSE["networks"].items():
        assert network.get("internal", False) == (name != "outside")
    for name in OURS:
        assert "ports" not in SERVICES[name]
    assert "ports" not in SERVICES["db"]


def test_images_are_pinned_by_version_and_can_be_by_digest(tmp_path: Path) -> None:
    """A digest is known to the registry only: a step that is documented asks it."""
    images = {service["image"] for service in SERVICES.values()}
    images |= {SERVICES["server"]["build"]["args"]["PYTHON_IMAGE"]}
    named = {re.fullmatch(r"\$\{(\w+):-([^}]+)\}", image) for image in images}
    defaults = {found[1]: found[2] for found in named if found}
    assert set(defaults) == {
        *("POSTGRES_IMAGE", "CADDY_IMAGE", "PROMETHEUS_IMAGE", "PYTHON_IMAGE", "RETICENT_IMAGE")
    }
    del defaults["RETICENT_IMAGE"]  # built here
    assert all(re.search(r":v?\d+\.\d+(\.\d+)?", image) for image in defaults.values())
    assert f"ARG PYTHON_IMAGE={defaults['PYTHON_IMAGE']}" in DOCKERFILE
    assert DOCKERFILE.count("FROM ${PYTHON_IMAGE}") == 2
    docker = tmp_path / "docker"
    docker.write_text('#!/bin/sh\n[ "$1" = pull ] || echo "${5%:*}@sha256:${#5}"\n')
    docker.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [ROOT / "deploy/pin-images.sh"],
        env={"PATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    pinned = {f"{k}={v.rpartition(':')[0]}@sha256:{len(v)}" for k, v in defaults.items()}
    assert set(done.stdout.splitlines()) == pinned
    assert "deploy/pin-images.sh >> .env" in (ROOT / "docs/how-to/deploy.md").read_text("utf-8")


def test_no_password_is_in_the_environment() -> None:
    """Passwords are in files, each mounted into the containers alone that need it."""
    for name, service in SERVICES.items():
        for variable, value in service.get("environment", {}).items():
            assert "PASSWORD" not in variable or variable.endswith("_FILE")
            assert not re.search(r"//[^/@]*:[^/@]*@", str(value)), (name, variable)
        if name in USERS:
            assert mounts(name)["/run/secrets"] == (f"./deploy/secrets/{name}", False)
    assert "env_file" not in str(COMPOSE)


def test_the_server_serves_with_the_least_of_roles() -> None:
    def roles(name: str) -> tuple[str, str]:
        given = SERVICES[name]["environment"]
        urls = (given["RETICENT_DATABASE_URL"], given["RETICENT_VAULT_URL"])
        return tuple(re.findall(r"//(\w+)@", url)[0] for url in urls)  # type: ignore[return-value]

    assert roles("init") == ("ledger_owner", "vault_owner")
    assert roles("server") == ("ledger", "vault")
    assert roles("curator") == ("ledger", "vault_owner")
    assert mounts("server")["/var/lib/reticent"] == ("state", False)
    assert mounts("curator")["/tables"] == ("./deploy/tables", False)


def test_the_image_runs_as_nobody_in_particular_and_says_whether_it_is_ready() -> None:
    last = DOCKERFILE.split("FROM ")[-1]
    user = re.search(r"^USER (\w+)$", last, flags=re.MULTILINE)
    assert user is not None
    assert user[1] != "root"
    assert f"--uid {USERS['server']} " in last
    assert "/readyz" in last
    kept = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    assert kept[0] == "*"
    assert all(f"!{path}" in kept for path in ("server", "migrations", "constraints.txt"))


def test_only_the_machine_itself_reaches_the_curator_s_ports() -> None:
    ports = {port for service in SERVICES.values() for port in service.get("ports", ())}
    assert {port for port in ports if not port.startswith("127.0.0.1:")} == {"443:443"}


def test_the_console_is_reached_as_localhost_whatever_the_server_s_name() -> None:
    """As the guide says, also through a tunnel; a site of another name would refuse that
    handshake.
    """
    text = (ROOT / "deploy/Caddyfile").read_text("utf-8")
    sites = dict(re.findall(r"^(\S+) \{\n(.*?)^\}", text, flags=re.MULTILINE | re.DOTALL))
    analysts, curators = (
        sites.pop("{$RETICENT_HOST:localhost}"),
        sites.pop("https://localhost:8443"),
    )
    assert not sites
    assert "tls internal" in curators
    assert ("reverse_proxy {$ANALYSTS:server:8000}" in analysts, "9464" in analysts) == (
        True,
        False,
    )
    assert ("reverse_proxy {$CURATORS:server:9464}" in curators, "8000" in curators) == (
        True,
        False,
    )
    assert "https://localhost:8443/console" in (ROOT / "docs/how-to/deploy.md").read_text("utf-8")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder `deploy` after make-secrets.sh; where the tests are not root's, without owners."""
    folder = tmp_path_factory.mktemp("made")
    deploy = folder / "deploy"
    shutil.copytree(ROOT / "deploy", deploy, ignore=shutil.ignore_patterns("secrets", "tables"))
    (deploy / "prometheus.yml").chmod(0o600)
    path = os.environ["PATH"]
    if os.geteuid() != 0:
        (folder / "chown").write_text("#!/bin/sh\n")
        (folder / "chown").chmod(0o755)
        path = f"{folder}{os.pathsep}{path}"
    for _ in range(2):  # the second time, what is there is kept
        subprocess.run(
            [deploy / "make-secrets.sh"], env={"PATH": path}, check=True, capture_output=True
        )
    return deploy


def test_secrets_are_for_the_users_of_their_containers(made: Path) -> None:
    for name, user in USERS.items():
        folder = made / "secrets" / name
        files = list(folder.iterdir())
        assert folder.stat().st_mode & 0o777 == 0o700
        assert {file.stat().st_mode & 0o777 for file in files} <= {0o400}
        if os.geteuid() == 0:
            assert {path.stat().st_uid for path in (folder, *files)} == {user}
    assert (made / "prometheus.yml").stat().st_mode & 0o777 == 0o644
    for name in ("anchors", "tables", "parquet", "dask"):
        assert (made / name).stat().st_mode & 0o777 == 0o700


def test_every_password_is_another_and_is_where_it_is_needed(made: Path) -> None:
    passwords = {file.name: file.read_text() for file in (made / "secrets/db").iterdir()}
    assert len(passwords) == len(set(passwords.values())) == 5
    assert all(re.fullmatch("[0-9a-f]{48}", password) for password in passwords.values())
    for name, roles in (
        ("init", ("ledger_owner", "vault_owner")),
        ("server", ("ledger", "vault")),
        ("curator", ("ledger", "vault_owner")),
    ):
        lines = (made / "secrets" / name / "passwords").read_text().splitlines()
        wanted = [f"db:5432:{role.partition('_')[0]}:{role}:{passwords[role]}" for role in roles]
        assert lines == wanted
    assert list((made / "secrets/prometheus").iterdir()) == []  # a curator's key comes there


def test_files_that_are_mounted_exist(made: Path) -> None:
    for name in SERVICES:
        for source, _ in mounts(name).values():
            if source.startswith("./"):
                assert (made.parent / source).exists(), source


def test_nothing_that_is_made_is_kept_in_the_repository_or_in_the_image() -> None:
    ignored = (ROOT / ".gitignore").read_text("utf-8").splitlines()
    for name in ("secrets", "anchors", "tables", "parquet", "dask"):
        assert f"deploy/{name}/" in ignored
    kept = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    assert "!deploy" not in kept


def test_prometheus_asks_with_the_key_that_the_guide_writes() -> None:
    text = (ROOT / "deploy/prometheus.yml").read_text("utf-8")
    assert "credentials_file: /run/secrets/curator-key" in text
    guide = (ROOT / "docs/how-to/deploy.md").read_text("utf-8")
    assert "deploy/secrets/prometheus/curator-key" in guide


SETTING = re.compile(rf"\b({PREFIX}[A-Z_]+)=")


def test_one_machine_without_containers_has_the_same_program() -> None:
    """The unit of systemd, its settings, and the script for commands."""
    unit = (ROOT / "deploy/reticent.service").read_text("utf-8")
    (command,) = re.findall(r"^ExecStart=/opt/reticent/bin/reticent (.*)$", unit, re.MULTILINE)
    assert Session()._run([*shlex.split(command), "--help"])
    for line in (
        "NoNewPrivileges=true",
        "CapabilityBoundingSet=",
        "ProtectSystem=strict",
        "LimitCORE=0",
    ):
        assert line in unit.splitlines()
    known = {PREFIX + name.upper() for name in Settings.model_fields}
    served = (ROOT / "deploy/server.env").read_text("utf-8")
    script = (ROOT / "deploy/reticent-as.sh").read_text("utf-8")
    assert set(SETTING.findall(served)) == set(SETTING.findall(script)) <= known
    assert "//ledger@" in served
    assert "//vault@" in served
    page = (ROOT / "docs/how-to/virtual-machine.md").read_text("utf-8")
    for name in set(re.findall(r"deploy/[\w.-]+", page)) - {"deploy/"}:
        assert (ROOT / name).is_file(), name
    caddy = (ROOT / "deploy/Caddyfile").read_text("utf-8")
    for variable in re.findall(r"\{\$(\w+):", caddy):
        assert f"{variable}=" in page, variable


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
