# SPDX-License-Identifier: Apache-2.0
"""Runs what documentation tells people to type: commands, and Python against the server they start.

Everything runs in this process and in a directory of its own: `reticent serve` is a thread on a
free port, whose address takes the place of the one in the text, as the key that was printed last
takes the place of rk_….
"""

import io
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, chdir, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click
import typer

import reticent
from reticent_server.app import create_app
from reticent_server.cli import root
from reticent_server.settings import Settings
from support.installations.in_thread import in_thread
from support.installations.small import opened

ADDRESS = "http://127.0.0.1:8000"
KEY = re.compile(r"rk_…")
PRINTED = re.compile(r"^rk_\S+$", re.MULTILINE)


class Failed(Exception):
    """What was typed did not work."""


class Session:
    """A person at a terminal. key: the one that was printed last. url: of the running server."""

    def __init__(self) -> None:
        self.key = "rk_none"
        self.url = ADDRESS
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self._stack = ExitStack()

    def close(self) -> None:
        self._stack.close()

    def shell(self, text: str) -> str:
        """Runs command lines, joined where they end in a backslash; what they printed."""
        printed = ""
        for line in text.replace("\\\n", " ").splitlines():
            for command in line.removeprefix("$ ").split(" && "):
                words = shlex.split(command, comments=True)
                if words:
                    printed += self._command(self._substituted(words))
        return printed

    def python(self, text: str) -> str:
        """Runs a block of statements in the session's names; what it printed."""
        out = io.StringIO()
        try:
            with redirect_stdout(out):
                exec(compile(self._substituted([text])[0], "<documentation>", "exec"), self.names)
        finally:
            for value in self.names.values():
                if isinstance(value, reticent.Client | reticent.Dataset):
                    self._stack.callback(value._http.close)
        return out.getvalue()

    def _substituted(self, texts: list[str]) -> list[str]:
        return [KEY.sub(self.key, text).replace(ADDRESS, self.url) for text in texts]

    def _command(self, words: list[str]) -> str:
        program, *arguments = words
        if program != "reticent":
            raise Failed(f"only `reticent` can be run here, not {program!r}")
        if arguments[:1] == ["serve"]:
            self._serve(arguments)
            return ""
        target = None
        if ">" in arguments:
            at = arguments.index(">")
            arguments, target = arguments[:at], Path(arguments[at + 1])
        out = self._run(arguments)
        if target is not None:
            target.write_text(out, encoding="utf-8")
        found = PRINTED.findall(out)
        self.key = found[-1] if found else self.key
        return out

    def _run(self, arguments: list[str]) -> str:
        out, err = io.StringIO(), io.StringIO()
        status: object = 0
        with redirect_stdout(out), redirect_stderr(err):
            try:
                status = root(arguments)(args=arguments, standalone_mode=False)
            except (click.ClickException, typer.Exit, SystemExit) as error:
                status = getattr(error, "exit_code", None) or str(error) or 1
        if status:
            raise Failed(f"reticent {shlex.join(arguments)}: {status}: {err.getvalue()}")
        return out.getvalue()

    def _serve(self, arguments: list[str]) -> None:
        """Serves as `reticent serve` would; its options are read by the command's own parser."""
        if not self._run([*arguments, "--help"]):
            raise Failed("serve has no help")
        services = self._stack.enter_context(opened(Settings()))
        self.url = self._stack.enter_context(in_thread(create_app(services))).url


@contextmanager
def session(
    directory: Path, settings: Mapping[str, str] = MappingProxyType({})
) -> Iterator[Session]:
    """A session in a directory, with these RETICENT_ variables and no others."""
    hidden = {name: os.environ.pop(name) for name in [*os.environ] if name.startswith("RETICENT_")}
    started = Session()
    with chdir(directory):
        os.environ.update(settings)
        try:
            yield started
        finally:
            started.close()
            for name in settings:
                os.environ.pop(name, None)
            os.environ.update(hidden)
