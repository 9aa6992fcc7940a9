# SPDX-License-Identifier: Apache-2.0
"""The root of the command line: every command is there, and errors are one line."""

import os
import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from reticent_server import cli
from support.processes import forked

PATIENCE = 300  # seconds

HEAVY = (
    "adbc_driver_manager",
    "alembic",
    "dask",
    "fastapi",
    "httpx",
    "jinja2",
    "numpy",
    "opendp",
    "pandas",
    "pyarrow",
    "pydantic_settings",
    "reticent",
    "scipy",
    "sqlalchemy",
    "sqlalchemy.dialects.postgresql",
    "sqlalchemy.orm",
    "statsmodels",
    "structlog",
    "uvicorn",
)
"""What a command that reads no row does without: the database and the printing of tables are half
of its start.
"""

COMMANDS_WITHOUT_ROWS = ("analyst", "budget", "curator", "dataset", "ledger", "proposal")
WITHOUT_ROWS = (
    ("budget", "show"),
    ("analyst", "add", "ada"),
    ("analyst", "list"),
    ("curator", "list"),
    ("proposal", "list"),
    ("ledger", "show"),
    ("ledger", "verify"),
    ("ledger", "head"),
)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    return ended.value.code, *capsys.readouterr()


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, name, "--help")
    assert (code, err) == (0, "")
    assert f"reticent {name}" in out
    _, whole, _ = run(capsys, "--help")
    assert name in whole


@pytest.mark.parametrize("name", [name for name, c in cli.COMMANDS.items() if c.group])
def test_the_line_of_help_is_the_group_s_own(name: str) -> None:
    assert import_module(f"reticent_server.cli.{name}").app.info.help == cli.COMMANDS[name].help


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--version") == (0, f"reticent {version('reticent-server')}\n", "")


@pytest.mark.parametrize("arguments", [("brew",), ("init", "--brew"), ("dataset", "brew")])
def test_what_there_is_not(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert "No such" in err


def test_an_unexpected_error_is_one_line_without_its_text(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> typer.Typer:
        raise KeyError("the cell is 4711")

    monkeypatch.setattr(cli, "root", broken)
    monkeypatch.delenv("RETICENT_LOG_LEVEL", raising=False)
    code, _, err = run(capsys, "init")
    assert (code, len(err.splitlines())) == (1, 1)
    assert "KeyError" in err
    assert "4711" not in err


def imports(commands: Sequence[tuple[str, ...]], place: Path) -> dict[str, set[str]]:
    """For each command: which of HEAVY a new process has imported when it and those before it have
    ended.
    """
    program = (
        "import sys; from reticent_server.cli import main\n"
        f"for command in {list(commands)!r}:\n"
        "    try: main(command)\n"
        "    except SystemExit as ended:\n"
        f"        print('=', *command, '=', ended.code or 0, *(m for m in {HEAVY} if m in "
        "sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=place
    )
    assert done.stderr == ""
    lines = [line.split("= ") for line in done.stdout.splitlines() if line.startswith("= ")]
    statuses = {command.strip(): found.split() for _, command, found in lines}
    assert {status for status, *_ in statuses.values()} == {"0"}
    assert list(statuses) == [" ".join(command) for command in commands]
    return {command: set(found) for command, (_, *found) in statuses.items()}


@pytest.mark.slow
def test_help_imports_nothing_heavy(tmp_path: Path) -> None:
    """The database library is needed to define the commands of a group, and not to list the
    groups.
    """
    groups = [(name, "--help") for name in COMMANDS_WITHOUT_ROWS]
    every, *each = imports([("--help",), *groups], tmp_path).values()
    assert every == set()
    assert set().union(*each) <= {"sqlalchemy"}


@pytest.mark.slow
def test_commands_that_read_no_row_import_the_database_alone(tmp_path: Path) -> None:
    given = (str(tmp_path), ["init"])
    begun = forked.forked(forked.command, given, os.environ, tmp_path / "init.log")
    with begun.stdout as told:
        told.read()
    assert begun.wait(PATIENCE) == 0
    found = imports([(*command, "--json") for command in WITHOUT_ROWS], tmp_path)
    assert found == {command: {"sqlalchemy"} for command in found}


def test_a_flag_has_no_type_in_its_help() -> None:
    shown = CliRunner().invoke(cli.root(["dataset"]), ["dataset", "load", "--help"]).output
    assert "--strict" in shown
    assert "<bool>" not in shown
    assert "<path>" in shown
