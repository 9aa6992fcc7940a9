# SPDX-License-Identifier: Apache-2.0
"""The reference pages of the documentation, made from the code: they cannot say what it does not
do.
"""

import inspect
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import typer

import reticent
from reticent_server.api.application import make_application
from reticent_server.app import build_services
from reticent_server.cli import COMMANDS, root
from reticent_server.cli.examples import EXAMPLES
from reticent_server.cli.init import prepare
from reticent_server.settings import PREFIX, Settings

Json = Mapping[str, Any]

_MODULE = re.compile(r"\b(?:reticent\.(?:[a-z_]+\.)+|collections\.abc\.|typing\.)")
"""What stands before a class in an annotation."""
_QUOTED = re.compile(r"(->|:) '([^']*)'")
"""An annotation that is a text; a default that is a text follows an equals sign."""


def pages() -> dict[str, str]:
    """Contents by path below docs/."""
    return {
        "reference/command-line.md": command_line(),
        "reference/client.md": client(),
        "reference/http.md": http(openapi()),
        "reference/settings.md": settings(),
        "reference/release.schema.json": json.dumps(
            reticent.release_schema(), indent=1, ensure_ascii=False
        ),
    }


def command_line() -> str:
    """Every command with its arguments, options and examples."""
    lines = [
        "# Command line",
        "",
        (
            "Every command takes `--help` and, but for `serve` and `demo`, `--json`. Settings come "
            "from"
        ),
        (
            "[environment variables](settings.md). Exit status: 0 done, 1 refused (one line on "
            "standard error),"
        ),
        "2 not understood. `reticent --install-completion` teaches the shell to complete commands.",
    ]
    for name in COMMANDS:
        whole = typer.main.get_command(root([name]))
        command = whole.commands[name]  # type: ignore[attr-defined]
        lines += ["", f"## {name}", "", _first(command.help)]
        for sub in getattr(command, "commands", {}).values():
            lines += [
                "",
                f"### {name} {sub.name}",
                "",
                _first(sub.help),
                *_command(sub, f"{name} {sub.name}"),
            ]
        if name in EXAMPLES:
            lines += _command(command, name)
    return "\n".join(lines) + "\n"


def _command(command: Any, name: str) -> list[str]:
    rows = [row for parameter in command.params if (row := _parameter(parameter))]
    table = ["", "| | |", "|---|---|", *rows] if rows else []
    return [*table, "", "```sh", *EXAMPLES.get(name, ()), "```"]


def _parameter(parameter: Any) -> str:
    if parameter.name == "help":
        return ""
    if parameter.param_type_name == "argument":
        label = str(parameter.name).upper()
    else:
        label = parameter.opts[0] + ("" if parameter.is_flag else f" {parameter.name.upper()}")
    shown = (
        ""
        if parameter.default in (None, False, 0.0) or callable(parameter.default)
        else f" Default: {parameter.default}."
    )
    needed = " Required." if parameter.required and parameter.param_type_name == "option" else ""
    return f"| `{label}` | {_cell(parameter.help or '')}{needed}{shown} |"


def client() -> str:
    """Every public name of the client, with its docstring and its members."""
    lines = [
        "# Client",
        "",
        "Everything is imported from `reticent`; the rest of the package is private.",
    ]
    for name in sorted(reticent.__all__, key=str.lower):
        found = getattr(reticent, name)
        lines += ["", f"## {name}", ""]
        if not inspect.isclass(found):
            lines += [f"`{name}{_signature(found)}`", "", *_doc(found)]
            continue
        if issubclass(found, reticent.ReticentError):
            parent = found.__mro__[1].__name__
            lines += [f"Error, a kind of `{parent}`.", ""]
        lines += _doc(found)
        for member, value in _members(found):
            lines += [
                "",
                f"### {name}.{member} {{ #{name}.{member} }}",
                "",
                *_member(member, value),
            ]
    return "\n".join(lines) + "\n"


def _members(found: type) -> Iterator[tuple[str, Any]]:
    """Members of a class and of its bases that have no section of their own."""
    bases = [base for base in found.__mro__[1:] if base.__module__.startswith("reticent.")]
    private = [base for base in bases if base.__name__ not in reticent.__all__]
    members = {name: value for each in (found, *private) for name, value in vars(each).items()}
    for member, value in members.items():
        documented = isinstance(value, property) or inspect.isfunction(value)
        if not member.startswith("_") and documented and member not in {"from_json", "check"}:
            yield member, value


def _member(name: str, value: Any) -> list[str]:
    if isinstance(value, property):
        kind = inspect.signature(value.fget).return_annotation if value.fget else ""
        return [f"`{getattr(kind, '__name__', kind)}`", "", *_doc(value)]
    return [f"`{name}{_signature(value)}`", "", *_doc(value)]


def _signature(found: Any) -> str:
    text = str(inspect.signature(found)).replace("(self, ", "(").replace("(self)", "()")
    return _QUOTED.sub(r"\1 \2", _MODULE.sub("", text))


def _doc(found: Any) -> list[str]:
    """A docstring as Markdown: plain paragraphs, code for examples and drawings."""
    lines: list[str] = []
    for block in (inspect.getdoc(found) or "").split("\n\n"):
        is_code = block.startswith((">>>", " "))
        lines += (
            ["```text", *map(_without_directive, block.splitlines()), "```"] if is_code else [block]
        )
        lines.append("")
    return lines[:-1]


def _without_directive(line: str) -> str:
    return line.partition("# doctest:")[0].rstrip()


def openapi() -> Json:
    """The OpenAPI document of a server that has nothing loaded."""
    with TemporaryDirectory() as folder:
        place = Path(folder)
        given = Settings(
            database_url=f"sqlite:///{place / 'reticent.db'}",
            vault_url=f"sqlite:///{place / 'vault.db'}",
            secrets_file=place / "secrets.json",
        )
        prepare(given)
        services = build_services(given)
        document: Json = make_application(services).openapi()
        services.engine.close()
        services.catalog._engine.dispose()  # noqa: SLF001
        return document


def http(document: Json) -> str:
    """Every path and every schema of the OpenAPI document."""
    lines = [
        "# HTTP interface",
        "",
        "`Authorization: Bearer <key>` with an analyst's key. JSON only. The document itself is at",
        (
            "`/openapi.json` of every server. Errors are `application/problem+json` with a stable "
            "`code`, and"
        ),
        "repeat neither input nor private facts.",
    ]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            lines += ["", f"## {method.upper()} {path}", "", operation.get("description", "")]
            lines += ["", "| status | reply |", "|---|---|"]
            lines += [
                f"| {status} | {_reply(reply)} |"
                for status, reply in operation["responses"].items()
            ]
    lines += ["", "## Schemas"]
    for name, schema in document["components"]["schemas"].items():
        lines += ["", f"### {name}", "", schema.get("description", "")]
        fields = schema.get("properties", {})
        if fields:
            lines += ["", "| field | type | |", "|---|---|---|"]
            lines += [
                f"| `{f}` | {_type(s)} | {_cell(s.get('description', ''))} |"
                for f, s in fields.items()
            ]
    return "\n".join(lines) + "\n"


def _reply(reply: Json) -> str:
    schemas = [
        _type(media["schema"]) for media in reply.get("content", {}).values() if "schema" in media
    ]
    return " ".join([_cell(str(reply.get("description", ""))), *schemas])


def _type(schema: Json) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(_type(each) for each in schema[several])
    if "const" in schema or "enum" in schema:
        values = schema.get("enum", [schema.get("const")])
        return ", ".join(f"`{value}`" for value in values)
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return str(schema.get("type", "any"))


def settings() -> str:
    """Every setting with its default."""
    lines = [
        "# Settings",
        "",
        (
            "A variable that begins with `RETICENT_` and is none of these is refused: a misspelt "
            "limit is no limit."
        ),
        "Relative paths are in the working directory.",
        "",
        "| variable | default |",
        "|---|---|",
    ]
    for name, field in Settings.model_fields.items():
        lines.append(f"| `{PREFIX}{name.upper()}` | `{field.default}` |")
    return "\n".join([*lines, "", *_doc(Settings)]) + "\n"


def _first(text: str | None) -> str:
    return " ".join((text or "").split())


def _cell(text: str) -> str:
    return _first(text).replace("|", "\\|").replace("<", "&lt;")
