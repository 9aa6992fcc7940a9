# SPDX-License-Identifier: Apache-2.0
"""What is built and installed: a client without a server, and a server that brings its
migrations.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tomllib
from email import message_from_bytes
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

from support.documents.code_blocks import ROOT
from support.documents.tools import tool

FOLDERS = {"reticent": "client", "reticent-server": "server"}
UPGRADE = """
import sys
from pathlib import Path
from reticent_server import database
assert Path(database.__file__).is_relative_to(sys.argv[1])
assert not (Path(sys.argv[1]).parent / "migrations").exists()
database.upgrade("sqlite:///made.db")
assert database.is_current(database.connect("sqlite:///made.db"))
"""


def project(folder: str) -> dict[str, Any]:
    text = (ROOT / folder / "pyproject.toml").read_text("utf-8")
    found: dict[str, Any] = tomllib.loads(text)["project"]
    return found


def wheel(source: Path, place: Path) -> Path:
    (built,) = WheelBuilder(str(source)).build(directory=str(place), versions=["standard"])
    return Path(built)


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ZipFile]:
    place = tmp_path_factory.mktemp("wheels")
    return {name: ZipFile(wheel(ROOT / folder, place)) for name, folder in FOLDERS.items()}


def modules(folder: str) -> set[str]:
    """Files of the package in the repository, as a wheel names them."""
    root = ROOT / folder
    paths = (path for path in root.rglob("*") if path.is_file() and path.parent != root)
    return {str(p.relative_to(root)) for p in paths if "__pycache__" not in p.parts}


def held(built: ZipFile) -> set[str]:
    return {name for name in built.namelist() if ".dist-info/" not in name}


@pytest.mark.slow
def test_the_client_s_wheel_holds_the_client_alone(wheels: dict[str, ZipFile]) -> None:
    assert held(wheels["reticent"]) == modules("client")
    assert {name.split("/")[0] for name in held(wheels["reticent"])} == {"reticent"}
    assert not any(name.endswith("entry_points.txt") for name in wheels["reticent"].namelist())


def test_the_server_s_wheel_holds_the_server_and_the_migrations(wheels: dict[str, ZipFile]) -> None:
    shipped = {name for name in held(wheels["reticent-server"]) if "/_migrations/" in name}
    assert held(wheels["reticent-server"]) - shipped == modules("server")
    folder = ROOT / "migrations"
    kept = {p for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts}
    inside = {f"reticent_server/_migrations/{path.relative_to(folder)}" for path in kept}
    assert shipped == inside
    assert sum("/versions/0" in name for name in shipped) >= 8


@pytest.mark.slow
@pytest.mark.parametrize("name", FOLDERS)
def test_a_wheel_requires_what_it_imports_and_nothing_else(
    name: str, wheels: dict[str, ZipFile]
) -> None:
    """Also what functions import; extras' requirements are named by the metadata, too."""
    built = wheels[name]
    (metadata,) = (each for each in built.namelist() if each.endswith(".dist-info/METADATA"))
    headers = message_from_bytes(built.read(metadata))
    sources = {n: built.read(n).decode() for n in held(built) if n.endswith(".py")}
    assert len(sources) > 50
    assert tool("imports").faults(sources, headers.get_all("Requires-Dist", []), name) == []


@pytest.mark.slow
def test_the_server_s_wheel_makes_a_database(wheels: dict[str, ZipFile], tmp_path: Path) -> None:
    unpacked = tmp_path / "unpacked"
    wheels["reticent-server"].extractall(unpacked)
    subprocess.run(
        [sys.executable, "-c", UPGRADE, str(unpacked)],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(unpacked)},
        check=True,
        timeout=600,
    )


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("name", FOLDERS)
def test_a_source_distribution_builds_the_same_wheel(
    name: str, wheels: dict[str, ZipFile], tmp_path: Path
) -> None:
    builder = SdistBuilder(str(ROOT / FOLDERS[name]))
    (built,) = builder.build(directory=str(tmp_path), versions=["standard"])
    with tarfile.open(built) as archive:
        archive.extractall(tmp_path, filter="data")
    again = wheel(Path(built.removesuffix(".tar.gz")), tmp_path)
    with ZipFile(again) as rebuilt:
        assert held(rebuilt) == held(wheels[name])


def test_each_names_the_other_at_the_same_version() -> None:
    client, server = project("client"), project("server")
    assert [client["name"], server["name"]] == list(FOLDERS)
    assert client["version"] == server["version"]
    assert client["optional-dependencies"]["server"] == [f"reticent-server=={client['version']}"]
    assert f"reticent=={client['version']}" in server["dependencies"]
    named = {word.split(">")[0] for word in client["dependencies"]}
    assert named == {"httpx", "narwhals", "numpy", "scipy"}
    for part in ("requires-python", "license"):
        assert client[part] == server[part]
    for folder in FOLDERS.values():
        assert (ROOT / folder / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_the_command_is_the_server_s() -> None:
    (command,) = entry_points(group="console_scripts", name="reticent")
    assert command.dist is not None
    assert (command.dist.name, command.value) == ("reticent-server", "reticent_server.cli:main")


def test_pins_name_no_index() -> None:
    """Where packages come from is the machine's own setting."""
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    assert lines
    assert all("==" in line and "/" not in line and not line.startswith("-") for line in lines)
