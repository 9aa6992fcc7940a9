"""The root of the command line: every command is there, and errors are one line."""

import subprocess
import sys
from importlib import import_module
from importlib.metadata import version

import pytest
import typer

from reticent_server import cli

HEAVY = ("fastapi", "sqlalchemy", "numpy", "opendp", "pyarrow", "statsmodels", "uvicorn")


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
    assert run(capsys, "--version") == (0, f"reticent {version('reticent')}\n", "")


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


def test_help_imports_nothing_heavy() -> None:
    program = (
        "import sys; from reticent_server.cli import main\n"
        "try: main(['--help'])\n"
        f"except SystemExit: sys.exit(','.join(m for m in {HEAVY} if m in sys.modules) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
