# SPDX-License-Identifier: Apache-2.0
"""`reticent`: the curator's command line.

Each command's module is imported only when that command is called: what they need (a database
library, numpy, a web framework) takes a second to import, and `reticent --help` needs none of it.
"""

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from traceback import print_exc
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from reticent_server.api.logs import configure_logging
from reticent_server.cli.examples import epilog
from reticent_server.process import keep_to_itself


class PlainFlags(TyperCommand):
    """A command whose help shows a flag as a flag: it takes no value, so it has no type."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Typer's parameters; those that are flags show no type."""
        return [_plain(parameter) for parameter in super().get_params(ctx)]


class _PlainFlagsGroup(TyperGroup):
    """The same, of a group of commands."""

    def get_params(self, ctx: Any) -> list[Any]:
        """As PlainFlags.get_params."""
        return [_plain(parameter) for parameter in super().get_params(ctx)]


def _plain(parameter: Any) -> Any:
    if isinstance(parameter, TyperOption) and parameter.is_flag:
        parameter.metavar = ""
    return parameter


@dataclass(frozen=True, slots=True)
class Command:
    """help: its line in `reticent --help`. group: whether it has commands of its own."""

    help: str
    group: bool = True


COMMANDS = {
    "init": Command("Create or upgrade the databases, and write the secrets file once.", False),
    "dataset": Command("Load private tables and describe them."),
    "population": Command("Make populations and declare their places."),
    "analyst": Command("Add analysts and manage their keys."),
    "curator": Command("Add curators, budget officers, auditors and operators."),
    "secrets": Command("Show and rotate the peppers that keys are stored under."),
    "proposal": Command("Approve what policies ask a second person for."),
    "project": Command("Decide requests for projects, list and close projects."),
    "budget": Command("Set, show and credit privacy budgets."),
    "protocol": Command("Check, sign and withdraw protocols of pooled studies."),
    "ledger": Command("Show, verify, anchor and export the ledger."),
    "certify": Command(
        "Say what is promised here, replayed on this installation and signed.", False
    ),
    "serve": Command("Answer analysts over HTTP.", False),
    "demo": Command("A whole session on real data: load, budget, serve, fit, print.", False),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs one command and exits; what goes wrong is one line on standard error."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    keep_to_itself()
    try:
        configure_logging("error")
        root(given)(args=given, prog_name="reticent")
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except Exception as error:  # noqa: BLE001 - the curator gets a line, not a stack
        sys.stderr.write(f"reticent: {_sentence(error)}\n")
        if os.environ.get("RETICENT_LOG_LEVEL") == "debug":
            print_exc()
        sys.exit(1)


def root(arguments: Sequence[str]) -> typer.Typer:
    """The command line with the called command in full, and the others as lines of help."""
    app = typer.Typer(
        cls=_PlainFlagsGroup,
        help="A curator's query server for robust, differentially private statistics.",
        no_args_is_help=True,
        add_completion=True,
        pretty_exceptions_enable=False,
    )
    app.callback()(_options)
    words = _words_to_complete() or arguments
    called = next((word for word in words if not word.startswith("-")), None)
    for name, command in COMMANDS.items():
        if name != called:
            app.command(name, cls=PlainFlags, help=command.help)(_not_called)
        elif command.group:
            group = _with_examples(import_module(f"{__name__}.{name}").app, name)
            app.add_typer(group, name=name, cls=_PlainFlagsGroup)
        else:
            module = import_module(f"{__name__}.{name}")
            app.command(name, cls=PlainFlags, epilog=epilog(name))(getattr(module, name))
    return app


def _words_to_complete() -> list[str]:
    """What is typed after `reticent` where a shell asks how it could go on, else nothing."""
    if "_RETICENT_COMPLETE" not in os.environ:
        return []
    typed = os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS", "")
    return typed.split()[1:]


def _with_examples(group: typer.Typer, name: str) -> typer.Typer:
    for command in group.registered_commands:
        own = command.name or getattr(command.callback, "__name__", "").replace("_", "-")
        command.epilog = epilog(f"{name} {own}")
        command.cls = PlainFlags
    return group


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"reticent {version('reticent-server')}")
        raise typer.Exit


def _options(
    _version: bool = typer.Option(
        False, "--version", help="Show the version.", callback=_print_version, is_eager=True
    ),
) -> None:
    """A curator's query server for robust, differentially private statistics."""


def _not_called() -> None:
    raise AssertionError("only its line of help is used")


def _sentence(error: Exception) -> str:
    """What to do. An error of a setting names the variable; of others, the class is all that is
    safe to repeat in a log.
    """
    errors: Callable[[], Sequence[dict[str, Sequence[str]]]] | None = getattr(error, "errors", None)
    if type(error).__name__ == "ValidationError" and errors is not None:
        names = sorted({f"RETICENT_{str(e['loc'][0]).upper()}" for e in errors() if e["loc"]})
        return f"not a valid setting: {', '.join(names)}."
    advice = "RETICENT_LOG_LEVEL=debug shows where."
    return f"unexpected error ({type(error).__name__}). {advice}"
