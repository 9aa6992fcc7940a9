# SPDX-License-Identifier: Apache-2.0
"""All regular expressions of the product, and the steps that one takes on a text.

`found` reads the source: every call of `re` and every `pattern=` of a field. `steps` matches as
Python's engine does, by going back where something does not fit, and counts; so that growth is
measured without a clock.
"""

import ast
import importlib
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from math import inf
from pathlib import Path
from typing import Any

sre: Any = importlib.import_module("re._constants")
parser: Any = importlib.import_module("re._parser")

ROOT = Path(__file__).parents[3]
SOURCES = {
    "server/reticent_server": "reticent_server",
    "client/reticent": "reticent",
}
SEARCHING = {"search", "sub", "subn", "split", "findall", "finditer"}
CALLS = {*SEARCHING, "match", "fullmatch", "compile"}


FEW, MANY = 16, 128
"""Times that a text repeats what it repeats: at first, and where it looks as if it grew fast."""

LINEAR = 2.6
"""Times as many steps of a text of twice the length; 4 where they grow with its square."""

ENOUGH = 60_000
"""Steps after which no more are counted."""

MOST_KINDS, MOST_PREFIXES = 7, 4
"""Of signs that an expression tells apart, for all pairs of them to be tried; of beginnings."""


@dataclass(frozen=True)
class Expression:
    """where: file and line. text: None where it is made of what is not known before it runs."""

    where: str
    text: str | None
    flags: int
    is_searched: bool

    @property
    def file(self) -> str:
        """The path of its file."""
        return self.where.rpartition(":")[0]


def found() -> list[Expression]:
    """Those of the server and of the Python client."""
    return [
        expression
        for folder, package in SOURCES.items()
        for path in sorted((ROOT / folder).rglob("*.py"))
        for expression in _of_file(path, package)
    ]


def _of_file(path: Path, package: str) -> Iterator[Expression]:
    source = path.read_text()
    if "re." not in source and "pattern" not in source:
        return
    tree = ast.parse(source)
    parts = path.relative_to(ROOT / next(k for k, v in SOURCES.items() if v == package)).parts
    name = ".".join([package, *parts])[: -len(".py")].removesuffix(".__init__")
    searched = {
        node.value.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr in SEARCHING
        and isinstance(node.value, ast.Name)
    }
    named = {
        id(node.value): target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        where = f"{path.relative_to(ROOT)}:{node.lineno}"
        call = node.func
        if (
            isinstance(call, ast.Attribute)
            and isinstance(call.value, ast.Name)
            and call.value.id == "re"
            and call.attr in CALLS
        ):
            if _is_compiled(node.args[0], name):
                continue
            flags = [*node.args[1:], *(k.value for k in node.keywords if k.arg == "flags")]
            is_searched = call.attr in SEARCHING or (
                call.attr == "compile" and named.get(id(node), "?") in {*searched, "?"}
            )
            yield Expression(
                where,
                _value(node.args[0], name),
                _flags(flags if call.attr == "compile" else (), name),
                is_searched,
            )
        for keyword in node.keywords:
            if keyword.arg == "pattern":
                yield Expression(where, _value(keyword.value, name), 0, is_searched=True)


def _value(node: ast.expr, module: str) -> str | None:
    try:
        value = _evaluated(node, module)
    except NameError:  # a local name
        return None
    return value if isinstance(value, str) else None


def _is_compiled(node: ast.expr, module: str) -> bool:
    """Whether it is an expression that was compiled elsewhere, and found there."""
    try:
        return isinstance(_evaluated(node, module), re.Pattern)
    except NameError:
        return False


def _flags(nodes: Any, module: str) -> int:
    return int(sum(_evaluated(node, module) for node in nodes))


def _evaluated(node: ast.expr, module: str) -> Any:
    code = compile(ast.Expression(node), module, "eval")
    return eval(code, vars(importlib.import_module(module)))


class TooMany(Exception):
    """More steps than are counted."""


Then = Callable[[int], bool]


def _noted(ends: list[int]) -> Then:
    """Takes down where a match ends, and is content with it."""

    def then(end: int) -> bool:
        ends.append(end)
        return True

    return then


class _Matching:
    """One text, and how many single looks at it matching takes."""

    def __init__(self, text: str, flags: int, most: int) -> None:
        self.text = text
        self.flags = flags
        self.most = most
        self.count = 0
        self.groups: dict[int, tuple[int, int]] = {}

    def step(self) -> None:
        self.count += 1
        if self.count > self.most:
            raise TooMany

    def run(self, items: Any, k: int, at: int, then: Then) -> bool:
        """Whether the items from the k-th on match at a place, and what follows them."""
        if k == len(items):
            return then(at)
        self.step()
        op, value = items[k]

        def rest(place: int) -> bool:
            return self.run(items, k + 1, place, then)

        if op is sre.SUBPATTERN:
            return self.run(value[3], 0, at, self.closing(value[0], at, rest))
        if op is sre.BRANCH:
            return any(self.run(each, 0, at, rest) for each in value[1])
        if op in (sre.MAX_REPEAT, sre.MIN_REPEAT):
            return self.repeat(value, at, rest, lazy=op is sre.MIN_REPEAT)
        return self.without_return(items[k], at, rest)

    def closing(self, group: int | None, at: int, rest: Then) -> Then:
        """Takes down what a group holds, and goes on."""

        def closed(end: int) -> bool:
            if group is not None:
                self.groups[group] = at, end
            return rest(end)

        return closed

    def without_return(self, item: Any, at: int, rest: Then) -> bool:
        """Items that match in one way, or not at all."""
        op, value = item
        ends: list[int] = []
        if op is sre.POSSESSIVE_REPEAT:
            self.repeat(value, at, _noted(ends), lazy=False)
        elif op is sre.ATOMIC_GROUP:
            self.run(value, 0, at, _noted(ends))
        elif op in (sre.ASSERT, sre.ASSERT_NOT):
            direction, inner = value
            start = at if direction > 0 else at - inner.getwidth()[0]
            matches = start >= 0 and self.run(inner, 0, start, lambda _: True)
            ends += [at] * (matches is (op is sre.ASSERT))
        elif op is sre.AT:
            ends += [at] * self.is_at(value, at)
        elif op is sre.GROUPREF:
            begin, end = self.groups.get(value, (0, 0))
            known = self.text[begin:end]
            self.count += len(known)
            ends += [at + len(known)] * self.text.startswith(known, at)
        elif at < len(self.text) and fits(item, self.text[at], self.flags):
            ends.append(at + 1)
        return bool(ends) and rest(ends[0])

    def repeat(self, value: Any, at: int, then: Then, *, lazy: bool) -> bool:
        least, most, inner = value

        def more(number: int, place: int, before: int) -> bool:
            self.step()
            enough = number >= least
            if lazy and enough and then(place):
                return True
            may = (most is sre.MAXREPEAT or number < most) and (place > before or not enough)
            if may and self.run(inner, 0, place, lambda end: more(number + 1, end, place)):
                return True
            return not lazy and enough and then(place)

        return more(0, at, -1)

    def is_at(self, where: Any, at: int) -> bool:
        text = self.text
        if where in (sre.AT_BEGINNING, sre.AT_BEGINNING_STRING):
            return at == 0
        if where is sre.AT_END_STRING:
            return at == len(text)
        if where is sre.AT_END:
            return at == len(text) or (at == len(text) - 1 and text[at] == "\n")
        words = [0 <= k < len(text) and (text[k].isalnum() or text[k] == "_") for k in (at - 1, at)]
        return bool((words[0] is not words[1]) is (where is sre.AT_BOUNDARY))


def fits(item: Any, sign: str, flags: int) -> bool:
    """Whether an item of one sign is this one."""
    op, value = item
    if op is sre.ANY:
        return bool(flags & re.DOTALL) or sign != "\n"
    if op is sre.LITERAL:
        same = sign == chr(value)
        return same or (bool(flags & re.IGNORECASE) and sign.lower() == chr(value).lower())
    if op is sre.NOT_LITERAL:
        return bool(sign != chr(value))
    assert op is sre.IN, op
    negated = value[0][0] is sre.NEGATE
    return any(_is_in(part, sign, flags) for part in value if part[0] is not sre.NEGATE) != negated


def _is_in(part: Any, sign: str, flags: int) -> bool:
    op, value = part
    if op is sre.LITERAL:
        return bool(ord(sign) == value)
    if op is sre.RANGE:
        return bool(value[0] <= ord(sign) <= value[1])
    letter = str(value).rpartition("_")[2].lower()[0]
    is_not = "NOT" in str(value)
    known = re.match(rf"\{letter}", sign, flags & re.ASCII) is not None
    return known != is_not


def steps(expression: Expression, tree: Any, text: str, most: int) -> int:
    """Of looking for it in all of a text, or of matching it from its beginning; at most `most`."""
    matching = _Matching(text, tree.state.flags, most)
    ends: list[int] = []
    at = 0
    try:
        while at <= len(text):
            ends.clear()
            hit = matching.run(tree, 0, at, _noted(ends))
            if not expression.is_searched:
                # fullmatch goes back where the end is not reached
                if hit and ends[0] < len(text):
                    matching.run(tree, 0, at, lambda end: end == len(text))
                break
            at = max(ends[0], at + 1) if hit else at + 1
    except TooMany:
        return most
    return matching.count


def hostile(tree: Any) -> Iterator[tuple[str, str, str]]:
    """(prefix, pump, suffix): texts that begin as a match does, go on with the same again and
    again, and end as no match does."""
    flags = tree.state.flags
    singles = list(_singles(tree))
    signs: dict[tuple[bool, ...], str] = {}
    for sign in "a1 \n.,()[]\"'`=:;~+-*/\\|_é\0\tZeE%" + "".join(map(chr, _literals(tree))):
        signs.setdefault(tuple(fits(item, sign, flags) for item in singles), sign)
    kinds = list(signs.values())
    example = "".join(_example(tree, kinds, flags))
    cuts = range(1, len(example) + 1, max(1, len(example) // MOST_PREFIXES))
    prefixes = ["", *(example[:k] for k in cuts), example]
    pairs = ["".join(pair) for pair in product(kinds, repeat=2)] if len(kinds) <= MOST_KINDS else []
    for pump in [*kinds, *pairs, example or "a"]:
        for prefix in prefixes if len(pump) == 1 else ("", example[:1]):
            for suffix in ("\0", example[-1:]):
                yield prefix, pump, suffix


def _children(value: Any) -> Iterator[Any]:
    if isinstance(value, parser.SubPattern):
        yield value
    elif isinstance(value, tuple | list):
        for each in value:
            yield from _children(each)


def _singles(tree: Any) -> Iterator[Any]:
    for op, value in tree:
        if op in (sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN):
            yield op, value
        for inner in _children(value):
            yield from _singles(inner)


def _literals(tree: Any) -> Iterator[int]:
    for op, value in _singles(tree):
        if op in (sre.LITERAL, sre.NOT_LITERAL):
            yield value
        elif op is sre.IN:
            for part, of in value:
                if part is sre.LITERAL:
                    yield of
                elif part is sre.RANGE:
                    yield from of


def _example(tree: Any, kinds: list[str], flags: int) -> Iterator[str]:
    """The signs of a short match, where lookarounds do not matter."""
    for op, value in tree:
        if op in (sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN):
            yield next((sign for sign in kinds if fits((op, value), sign, flags)), "a")
        elif op is sre.BRANCH:
            yield from _example(value[1][0], kinds, flags)
        elif op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            for _ in range(max(1, value[0])):
                yield from _example(value[2], kinds, flags)
        elif op is sre.SUBPATTERN:
            yield from _example(value[3], kinds, flags)
        elif op is sre.ATOMIC_GROUP:
            yield from _example(value, kinds, flags)


def worst_growth(expression: Expression) -> tuple[float, str]:
    """How many times as many steps the worst text of twice the length takes, and the text. One that
    grows faster than its length is looked at again where what is bounded has come to its end.
    """
    sys.setrecursionlimit(100_000)
    assert expression.text is not None
    tree = parser.parse(expression.text, expression.flags)
    worst, what = 0.0, ""

    def growth(prefix: str, pump: str, suffix: str, number: int) -> float:
        counts = [
            steps(expression, tree, prefix + pump * repeats + suffix, ENOUGH)
            for repeats in (number, 2 * number)
        ]
        return inf if counts[1] >= ENOUGH else counts[1] / max(counts[0], 1)

    for parts in hostile(tree):
        found = growth(*parts, FEW)
        if found > LINEAR:
            found = min(found, growth(*parts, MANY))
        if found > worst:
            worst, what = found, repr(parts)
        if worst > LINEAR:
            break
    return worst, what
