# SPDX-License-Identifier: Apache-2.0
"""Writes the client's methods from the questions of the server's kinds:
client/reticent/_methods.py.

    make generated      writes it; it is checked in, and a test says when it is stale

A question's fields become the method's parameters in their order, with their types and defaults.
Fields after `where`, fields of one choice, confidence levels and the dataclass's own keyword-only
fields are given by name. The docstring is the question's and its fields'; the examples are those
lines of the result class's docstring that call the method. A kind that asks another kind's question
takes the arguments of that kind's method, so its method is written by hand in reticent._dataset.
"""

import inspect
import re
import subprocess
import sys
import textwrap
import types
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic.fields import FieldInfo

from reticent.kinds import BY_GROUP, result_class
from reticent.kinds import KINDS as RESULTS
from reticent_server.kinds import KINDS
from reticent_server.kinds.base import Kind
from reticent_server.kinds.fields import Name

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "client/reticent/_methods.py"
WIDTH = 96
"""Characters of a docstring's line, with its indent below the project's 100."""
_PRIVACY = ("epsilon: float | None = None", "delta: float | None = None")
_SPENDING = (
    "idempotency_key: str | None = None",
    "ci_ratio: Widths | None = None",
    "half_width: Widths | None = None",
    "confirm: bool | None = None",
    "dry_run: DryRun | None = None",
)
"""What every method takes beside its question: reticent._spending."""
_PLAIN = {str: ("str", "TEXT"), float: ("float", "NUMBER"), int: ("int", "WHOLE")}
_PLAIN[bool] = ("bool", "FLAG")
_PYTHON = {"null": "None", "true": "True", "false": "False"}
_SPOKEN = re.compile(r"\b(?:null|true|false)\b")
_EXAMPLE = re.compile(r"^>>> .*(?:\n\.\.\. .*)*", re.MULTILINE)


_OF_EVERY_KIND = {"kind", "persons"}
"""Fields that no method takes: its own name, and the view that Dataset.persons has made."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A field of a question as a parameter. annotation, check, default: as source text; default
    None: required.
    """

    name: str
    annotation: str
    check: str
    default: str | None
    sent_default: str | None
    keyword: bool
    told: str

    @property
    def source(self) -> str:
        """As it stands in a signature."""
        return f"{self.name}: {self.annotation}" + (f" = {self.default}" if self.default else "")

    @property
    def field(self) -> str:
        """As an entry of a Question."""
        more = [] if self.sent_default is None else [self.sent_default]
        more += ["keyword=True"] if self.keyword else []
        return f"Field({', '.join([repr(self.name), self.check, *more])})"


def parameters(question: type) -> list[Parameter]:
    """Of a question's fields, those that may be given by place first."""
    hints = get_type_hints(question, include_extras=True)
    found, after_where = [], False
    for each in fields(question):
        if each.name in _OF_EVERY_KIND:
            continue
        hint = hints[each.name]
        keyword = after_where or each.kw_only is True or _by_name(each.name, hint)
        found.append(_parameter(each, hint, keyword))
        after_where = after_where or each.name == "where"
    return sorted(found, key=lambda p: p.keyword)


def _by_name(name: str, hint: Any) -> bool:
    return name == "confidence_level" or len(_choices(hint)) == 1


def _parameter(each: Any, hint: Any, keyword: bool) -> Parameter:
    annotation, check = _type(hint)
    check = "HAZARDS" if "`Surv(" in _told(hint) else check
    default = None if each.default is MISSING else repr(each.default)
    json = list(each.default) if isinstance(each.default, tuple) else each.default
    return Parameter(
        each.name,
        f"{annotation} | None" if _optional(hint) else annotation,
        check,
        default,
        None if default is None else repr(json),
        keyword,
        _told(hint),
    )


def _bare(hint: Any) -> Any:
    """Without Annotated, and without None beside something else."""
    if get_origin(hint) is Annotated:
        return _bare(get_args(hint)[0])
    if get_origin(hint) in {Union, types.UnionType}:
        rest = [each for each in get_args(hint) if each is not type(None)]
        return _bare(rest[0]) if len(rest) == 1 else Union[tuple(rest)]  # noqa: UP007
    return hint


def _optional(hint: Any) -> bool:
    while get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    return type(None) in get_args(hint)


def _type(hint: Any) -> tuple[str, str]:
    """(annotation, check) of a field's type, as source text."""
    bare = _bare(hint)
    if bare in _PLAIN:
        return _PLAIN[bare]
    origin, inner = get_origin(bare), get_args(bare)
    if origin is Literal:
        return f"Literal[{', '.join(map(_quoted, inner))}]", "TEXT"
    if origin is tuple:
        return _sequence(inner[0])
    if origin is dict:
        annotation, check = _type(inner[1])
        return f"Mapping[str, {annotation}]", f"named({check})"
    if all(is_dataclass(_bare(each)) for each in inner) and inner:
        return "Mapping[str, Any]", "QUERY"
    pairs = [_alternative(each) for each in inner]
    return " | ".join(a for a, _ in pairs), f"either({', '.join(c for _, c in pairs)})"


def _sequence(item: Any) -> tuple[str, str]:
    annotation, check = _type(item)
    nested = get_origin(_bare(item)) is tuple
    inside = annotation.replace("Iterable", "Sequence", 1) if nested else annotation
    return f"Iterable[{inside}]", f"several({'NAME' if item == Name else check})"


def _alternative(hint: Any) -> tuple[str, str]:
    """Of a union, of which the texts that stand for numbers are few and known."""
    annotation, check = _type(hint)
    if get_origin(_bare(hint)) is Literal:
        return annotation, f"word({', '.join(map(_quoted, get_args(_bare(hint))))})"
    return annotation, check


def _choices(hint: Any) -> tuple[Any, ...]:
    bare = _bare(hint)
    return get_args(bare) if get_origin(bare) is Literal else ()


def _told(hint: Any) -> str:
    """What a docstring says of a field: its choices or limits, and its description."""
    choices = [_quoted(each) for each in _choices(hint)]
    several = [", ".join(choices[:-1]), choices[-1]] if len(choices) > 1 else []
    parts = [" or ".join(several) or _limits(hint), _description(hint)]
    text = ". ".join(filter(None, parts)).rstrip(".")
    return _SPOKEN.sub(lambda word: _PYTHON[word[0]], text)


def _description(hint: Any) -> str:
    for each in _metadata(hint):
        if isinstance(each, FieldInfo) and each.description:
            return each.description
    return ""


def _limits(hint: Any) -> str:
    """The ends of a number's range where it has both."""
    ends = {
        name: getattr(each, name)
        for each in _metadata(hint)
        for name in ("ge", "le")
        if getattr(each, name, None) is not None
    }
    return f"{ends['ge']} to {ends['le']:,}" if len(ends) == 2 else ""


def _metadata(hint: Any) -> Iterator[Any]:
    """Of all depths, the outermost first."""
    if get_origin(hint) is Annotated:
        yield from hint.__metadata__
        yield from _metadata(get_args(hint)[0])
    elif get_origin(hint) in {Union, types.UnionType}:
        for each in get_args(hint):
            yield from _metadata(each)


def _quoted(text: Any) -> str:
    return f'"{text}"'


def classes(kind: str) -> list[type]:
    """The classes of a kind's releases: without `by`, and with it where that is another one."""
    return list(dict.fromkeys((result_class(kind), result_class(kind, by_group=True))))


def examples(kind: str) -> list[str]:
    """Examples of the result classes' docstrings that call the kind's method, by lines."""
    found: list[str] = []
    for each in classes(kind):
        for text in re.findall(_EXAMPLE, inspect.getdoc(each) or ""):
            found += text.splitlines() if f"ds.{kind}(" in text else []
    return found


def docstring(kind: Kind[Any]) -> str:
    """The question's docstring, its fields and examples, indented as in a method."""
    first, *rest = (inspect.getdoc(kind.query) or "").split("\n\n")
    blocks = [_wrapped(first, ""), *(_wrapped(each, "") for each in rest)]
    told = [f"{p.name}: {p.told}." for p in parameters(kind.query) if p.told]
    blocks += ["\n".join(_wrapped(each, "- ") for each in told)] if told else []
    blocks += ["\n".join(examples(kind.name))] if examples(kind.name) else []
    whole = "\n\n".join(blocks)
    return whole if whole.count("\n") == 0 else whole + "\n"


def _wrapped(text: str, bullet: str) -> str:
    return textwrap.fill(
        " ".join(text.split()),
        WIDTH - 8,
        initial_indent=bullet,
        subsequent_indent=" " * len(bullet),
        break_on_hyphens=False,
    )


def method(kind: Kind[Any]) -> str:
    """The source of a kind's method."""
    by_place = [p.source for p in parameters(kind.query) if not p.keyword]
    by_name = [p.source for p in parameters(kind.query) if p.keyword]
    signature = ", ".join(["self", *by_place, "*", *_PRIVACY, *by_name, *_SPENDING])
    values = ", ".join(f'"{p.name}": {p.name}' for p in parameters(kind.query))
    doc = textwrap.indent(docstring(kind), " " * 8).strip()
    end = "\n        " if doc.count("\n") else ""
    answer = f"{' | '.join(each.__name__ for each in classes(kind.name))} | NoReply"
    return (
        f'    def {kind.name}({signature}) -> "{answer}":\n'
        f'        """{doc}{end}"""\n'
        f"        values = {{{values}}}\n"
        "        spending = Spending("
        "epsilon, delta, ci_ratio, half_width, confirm, dry_run, idempotency_key)\n"
        f'        answer: {answer} = self._ask("{kind.name}", values, spending)\n'
        "        return answer\n"
    )


def _asks_another(kind: Kind[Any]) -> bool:
    return any(p.check == "QUERY" for p in parameters(kind.query))


def source() -> str:
    """The module, as the formatter leaves it."""
    kinds = [kind for kind in KINDS if kind.for_analysts]
    questions = "".join(
        f'"{k.name}": Question("{k.name}", '
        f"({''.join(p.field + ',' for p in parameters(k.query))})),"
        for k in kinds
    )
    methods = "\n".join(method(kind) for kind in kinds if not _asks_another(kind))
    body = f"QUESTIONS: Mapping[str, Question] = {{{questions}}}\n{_CLASS}\n{methods}"
    return _formatted(_HEAD + _imports(kinds, body) + body)


def _imports(kinds: list[Kind[Any]], body: str) -> str:
    checks = [name for name in _CHECKS if re.search(rf"\b{name}\b", body)]
    abstract = [name for name in ("Iterable", "Mapping", "Sequence") if f"{name}[" in body]
    places = {
        of.get(kind.name, ("_release", "Release"))
        for kind in kinds
        if not _asks_another(kind)
        for of in (RESULTS, BY_GROUP if kind.name in BY_GROUP else RESULTS)
    }
    results = "".join(
        f"    from reticent.{module} import {name}\n" for module, name in sorted(places)
    )
    return (
        f"from collections.abc import {', '.join(abstract)}\n"
        "from typing import TYPE_CHECKING, Any, Literal\n\n"
        f"from reticent._checks import {', '.join(checks)}\n"
        "from reticent._questions import Field, Question\n"
        "from reticent._spending import DryRun, Spending, Widths\n\n"
        f"if TYPE_CHECKING:\n    from reticent._release import NoReply\n{results}\n"
    )


_CHECKS = (
    "FLAG",
    "HAZARDS",
    "NAME",
    "NUMBER",
    "QUERY",
    "TEXT",
    "WHOLE",
    "either",
    "named",
    "several",
    "word",
)
_HEAD = '''# SPDX-License-Identifier: Apache-2.0
"""The methods of a data set, one for each kind of question.

Made by tools/client_methods.py from the server's questions.
"""

'''
_CLASS = '''"""What each kind asks for."""


class Methods:
    """What Dataset inherits; every method is charged when it is called, each time."""

    __slots__ = ()

    def _ask(self, kind: str, values: Mapping[str, Any], spending: Spending) -> Any:
        raise NotImplementedError
'''


def _formatted(text: str) -> str:
    ruff = [str(Path(sys.executable).with_name("ruff"))]
    for arguments in (["check", "--select=I", "--fix", "--quiet"], ["format", "--quiet"]):
        command = [*ruff, *arguments, "--stdin-filename", str(TARGET), "-"]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
        text = done.stdout
    return text


if __name__ == "__main__":
    TARGET.write_text(source(), "utf-8")
