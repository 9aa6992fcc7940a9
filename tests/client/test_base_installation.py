"""The client is a distribution of its own: it needs no server."""

import subprocess
import sys
from importlib.metadata import version

import reticent

OPTIONAL = ("pandas", "matplotlib", "fastapi", "sqlalchemy", "typer", "pyarrow", "opendp", "jinja2")


def run(program: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )


def test_the_client_needs_nothing_of_the_server() -> None:
    blocked = f"import sys; sys.modules.update(dict.fromkeys({(*OPTIONAL, 'reticent_server')}))\n"
    done = run(blocked + "import reticent; reticent.Client('http://127.0.0.1:1', key='rk_1')")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_version_is_that_of_the_distribution() -> None:
    assert reticent.__version__ == version("reticent")
