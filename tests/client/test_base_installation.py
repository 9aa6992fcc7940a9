"""The base installation is the client alone: it needs no server, and says where the server is."""

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


def test_the_program_without_a_server_says_what_to_install() -> None:
    done = run(
        "import sys; sys.modules['typer'] = None\n"
        "from reticent_server.entry import main; sys.argv = ['reticent', '--help']; main()"
    )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "typer is not installed" in done.stderr
    assert "pip install 'reticent[server]'" in done.stderr


def test_the_version_is_that_of_the_distribution() -> None:
    assert reticent.__version__ == version("reticent")
