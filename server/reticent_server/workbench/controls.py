# SPDX-License-Identifier: Apache-2.0
"""What a form shows for a question's field: made from the field's type alone, so that every kind
has a form.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from reticent_server.domain.query import OfPersons, Query
from reticent_server.kinds.base import Kind
from reticent_server.kinds.fields import Name, Text

PREFIX = "q."
"""Of the names of a question's fields in a form, so that none is taken for a field of the page."""

_OWN = {"kind"}
_FIRST: Mapping[str, str] = {
    "loss": "Least squares or robust?",
    "target": "Maximum likelihood or robust?",
}
"""What a reader of coefficients must know before anything else, as questions: huber and tukey, or
robust, bound what single records do.
"""

_CHOICES: Mapping[str, str] = {
    "squared": "Least squares, as most software",
    "huber": "Robust: single records decide little (Huber)",
    "tukey": "Robust: far-off responses count nothing (biweight)",
    "likelihood": "Maximum likelihood, as most software",
    "robust": "Robust: single records decide little",
}
"""Answers to these questions in plain words, by what is sent."""


@dataclass(frozen=True, slots=True)
class Control:
    """One field. look: which control shows it. choices: of a choice. told: what the field is.
    is_needed: without a default. default: as text. is_of_persons: whether it has a meaning only
    where the unit is a person.
    """

    name: str
    look: str
    choices: tuple[str, ...]
    told: str
    is_needed: bool
    default: str
    is_of_persons: bool = False

    @property
    def key(self) -> str:
        """The name of the form's field."""
        return PREFIX + self.name

    @property
    def label(self) -> str:
        """What stands before the field: words for a common one, else the field's name."""
        return _FIRST.get(self.name) or self.name.replace("_", " ").capitalize()

    @property
    def options(self) -> tuple[tuple[str, str], ...]:
        """The options of a choice: what is sent, and how a form calls it."""
        words = _CHOICES if self.name in _FIRST else {}
        return tuple((each, words.get(each, each)) for each in self.choices)

    @property
    def adds(self) -> bool:
        """Whether columns are added to its text."""
        is_list = self.look in {"names", "texts"} and self.name.startswith(("column", "variable"))
        return self.look == "formula" or is_list

    @property
    def rank(self) -> int:
        """The order in a form."""
        if self.name in _FIRST:
            return -1
        if self.is_needed:
            return 0
        return (2 if self.name == "where" else 1) if self.is_of_question else 3

    @property
    def is_of_question(self) -> bool:
        """Whether it says what is asked about, rather than how: such texts are kept when another
        kind is chosen.
        """
        return self.is_text or self.adds or self.look in {"name", "name or names"}

    @property
    def is_text(self) -> bool:
        """Whether it is a text in the grammar of formulas."""
        return self.look == "formula" or self.name == "where"


def controls(kind: Kind[Any]) -> tuple[Control, ...]:
    """The controls of a kind's question: those without a default first, then what it is about, then
    which records.
    """
    hints = get_type_hints(kind.query, include_extras=True)
    made = [
        _control(f, hints[f.name], kind.query) for f in fields(kind.query) if f.name not in _OWN
    ]
    return tuple(sorted(made, key=lambda control: control.rank))


def given(controls: Sequence[Control], texts: Mapping[str, str]) -> dict[str, Any]:
    """The question's fields as JSON, of a form's texts; what is empty or as by default is left
    out.
    """
    values = {}
    for control in controls:
        text = texts.get(control.key, "").strip()
        if text and text != control.default:
            values[control.name] = _READ[control.look](text)
    return values


def texts(controls: Sequence[Control], values: Mapping[str, Any]) -> dict[str, str]:
    """A form's texts of a question's fields; the inverse of `given`."""
    named = {control.name: control for control in controls}
    return {
        named[name].key: _shown(named[name].look, value)
        for name, value in values.items()
        if name in named and value is not None
    }


def _control(declared: Field[Any], hint: Any, query: type[Query]) -> Control:
    look, choices = _look(hint)
    is_needed = declared.default is MISSING and declared.default_factory is MISSING
    default = "" if is_needed or declared.default in (None, MISSING) else _spelled(declared.default)
    told = (
        _described(hint) or declared.metadata.get("description", "") or _told(query, declared.name)
    )
    is_of_persons = any(isinstance(mark, OfPersons) for mark in _marks(hint))
    return Control(declared.name, look, choices, told, is_needed, default, is_of_persons)


def _marks(hint: Any) -> Iterator[Any]:
    """What a type is annotated with, at any depth."""
    yield from getattr(hint, "__metadata__", ())
    for part in get_args(hint):
        yield from _marks(part)


def _look(hint: Any) -> tuple[str, tuple[str, ...]]:
    """The control of a type, and its choices."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _look_of_annotated(parts[0], parts[1:])
    if origin is Literal:
        return "choice", tuple(map(str, parts))
    if origin in (Union, UnionType):
        return _look_of_one([part for part in parts if part is not NoneType])
    if origin is tuple:
        return _LISTS.get(_look(parts[0])[0], "json"), ()
    is_mapping = isinstance(origin, type) and issubclass(origin, Mapping)
    return ("pairs" if is_mapping else _PLAIN.get(hint, "json")), ()


def _look_of_annotated(plain: Any, marks: Sequence[Any]) -> tuple[str, tuple[str, ...]]:
    """A name of a column and a formula are known by what is annotated: their limits, and an example
    with a tilde.
    """
    if plain is str and _begins_as(Name, marks):
        return "name", ()
    if plain is str and _begins_as(Text, marks):
        return ("formula" if any("~" in _description(mark) for mark in marks) else "text"), ()
    return _look(plain)


def _begins_as(annotated: Any, marks: Sequence[Any]) -> bool:
    own = get_args(annotated)[1:]
    return tuple(marks[: len(own)]) == own


def _look_of_one(parts: Sequence[Any]) -> tuple[str, tuple[str, ...]]:
    """Of several types: that of the only one; a column or several; a question as JSON; else a
    number, several, or a word.
    """
    if len(parts) == 1:
        return _look(parts[0])
    if {_look(part)[0] for part in parts} == {"name", "names"}:
        return "name or names", ()
    return ("json" if any(is_dataclass(part) for part in parts) else "value"), ()


def _description(mark: Any) -> str:
    return str(getattr(mark, "description", "") or "")


_PLAIN: Mapping[Any, str] = {str: "text", float: "number", int: "number", bool: "flag"}
_LISTS: Mapping[str, str] = {
    "name": "names",
    "names": "sets",
    "text": "texts",
    "number": "numbers",
}


def _number(text: str) -> Any:
    try:
        value = float(text)
    except ValueError:
        return text
    return int(value) if value.is_integer() and re.fullmatch(r"[-+]?\d+", text) else value


def _numbers(text: str) -> Any:
    return [_number(part) for part in re.split(r"[,\s]+", text.strip("[]() ")) if part]


def _names(text: str) -> Any:
    return [part.strip().strip("`") for part in re.split(r"[,\n]", text) if part.strip()]


def _sets(text: str) -> Any:
    return [_names(line) for line in _lines(text)]


def _name_or_names(text: str) -> Any:
    names = _names(text)
    return names[0] if len(names) == 1 else names


def _lines(text: str) -> Any:
    return [line.strip() for line in text.splitlines() if line.strip()]


def listed_texts(text: str) -> list[str]:
    """Texts, one a line or separated by commas outside of brackets and quotes."""
    parts = [part for line in _lines(text) for part in _parts(line)]
    return [part.strip() for part in parts if part.strip()]


_QUOTES = {'"': '"', "'": "'", "`": "`", "[": "]"}


def _parts(line: str) -> Iterator[str]:
    """A line between its commas. What is opened and never closed is a sign like others.

    Each sign is looked at a fixed number of times: where no end of a quote follows one place, none
    follows a later one.
    """
    ends = _bracket_ends(line)
    at = begin = 0
    endless: set[str] = set()
    while at < len(line):
        sign = line[at]
        if sign == ",":
            yield line[begin:at]
            begin = at + 1
        elif sign in _QUOTES and sign not in endless:
            end = line.find(_QUOTES[sign], at + 1)
            if end < 0:
                endless.add(sign)
            at = max(at, end)
        at = ends.get(at, at) + 1
    yield line[begin:]


def _bracket_ends(line: str) -> dict[int, int]:
    """Where each round bracket that is closed ends, by where it begins."""
    ends: dict[int, int] = {}
    opened: list[int] = []
    for at, sign in enumerate(line):
        if sign == "(":
            opened.append(at)
        elif sign == ")" and opened:
            ends[opened.pop()] = at
    return ends


def _pairs(text: str) -> Any:
    pairs = (line.partition(":") for line in _lines(text))
    return {name.strip(): value.strip() for name, _, value in pairs}


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _value(text: str) -> Any:
    """A number, several numbers, or a word."""
    parts = re.split(r"[,\s]+", text)
    if len(parts) > 1 and all(isinstance(_number(part), int | float) for part in parts):
        return [_number(part) for part in parts]
    return _json(text)


_READ: Mapping[str, Callable[[str], Any]] = {
    "name": str,
    "formula": str,
    "text": str,
    "choice": str,
    "flag": lambda text: text == "yes",
    "number": _number,
    "numbers": _numbers,
    "names": _names,
    "name or names": _name_or_names,
    "sets": _sets,
    "texts": listed_texts,
    "pairs": _pairs,
    "value": _value,
    "json": _json,
}


def _shown(look: str, value: Any) -> str:
    """A value as its control shows it; names of columns on one line, as an input has only one, and
    sets of them on a line each.
    """
    if look == "sets":
        return "\n".join(map(", ".join, value))
    text = _spelled(value)
    return text.replace("\n", ", ") if look in {"names", "name or names"} else text


def _spelled(value: Any) -> str:
    """A value as its control shows it."""
    match value:
        case bool():
            return "yes" if value else "no"
        case str():
            return value
        case int() | float():
            return f"{value:.12g}"
        case list() | tuple():
            return _list_spelled(value)
        case Mapping() if "kind" not in value:
            return "\n".join(f"{name}: {text}" for name, text in value.items())
        case _:
            return json.dumps(value)


def _list_spelled(values: Sequence[Any]) -> str:
    if all(isinstance(each, str) for each in values):
        return "\n".join(values)
    is_plain = all(isinstance(each, int | float) for each in values)
    return ", ".join(map(_spelled, values)) if is_plain else json.dumps(values)


def _described(hint: Any) -> str:
    """The description of an annotated type."""
    parts = get_args(hint) if get_origin(hint) is Annotated else ()
    return next(filter(None, map(_description, parts)), "")


def _told(query: type[Query], name: str) -> str:
    """What the question's docstring says of a field: "name: text." up to the next field."""
    text = " ".join((query.__doc__ or "").split())
    found = re.search(rf"\b{name}: (.+?)(?=[.;] \w+: |$)", text)
    return "" if found is None else found[1].rstrip(".") + "."
