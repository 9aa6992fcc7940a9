# SPDX-License-Identifier: Apache-2.0
"""A structural model in lavaan's words, over a study's columns.

    visual =~ x1 + x2 + x3      a factor and its indicators
    y ~ b*x + visual            a regression; b labels its slope
    x1 ~~ x2                    a covariance, or a variance (x1 ~~ x1)
    indirect := a*b             a function of labels

Lines end at a new line or ";", comments begin with "#". A number before "*" fixes a parameter, NA
frees it, a label names it; parameters with one label are equal. Defaults are lavaan's: the first
loading of a factor is 1 (or its variance, with std_lv), all variances are free, and so are the
covariances of factors that nothing explains, of observed columns that nothing explains, and of
responses that explain nothing.
"""

import ast
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from math import isfinite

from reticent._errors import InvalidFormula
from reticent._study.formula import Columns
from reticent._text_pieces import quoted_split, shortened

LOADING, SLOPE, COVARIANCE, DEFINED = "=~", "~", "~~", ":="
_OPERATORS = (LOADING, DEFINED, COVARIANCE, SLOPE)
_NAME = re.compile(r"[A-Za-z_.][A-Za-z0-9_.]*")
_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_BINARY: Mapping[type[ast.operator], Callable[[complex, complex], complex]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
MOST_TEXT = 10_000
"""Characters of a model, a thousand paths: a text may be a stranger's."""
MOST_EXPRESSION = 500
"""Characters of a function of labels, whose brackets are read one within the other."""
_LARGEST, _SMALLEST = 1e30, 1e-30
"""Of a fixed number that is not 0: four of them multiplied are still a number."""
_ARITHMETIC = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.Name, ast.Load, ast.Constant, ast.USub, ast.UAdd,
    *_BINARY,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Path:
    """One parameter: `left op right`, with its label and the value that it is fixed at, if any."""

    left: str
    op: str
    right: str
    label: str = ""
    fixed: float | None = None
    freed: bool = False

    @property
    def ends(self) -> tuple[str, frozenset[str]]:
        """Equal for two paths that state the same parameter: the operator and both sides, in any
        order."""
        return self.op, frozenset((self.left, self.right))

    def __str__(self) -> str:
        return f"{self.left} {self.op} {self.right}"


@dataclass(frozen=True, slots=True)
class PathModel:
    """factors and columns by name, columns by their places in the study; paths with the defaults;
    `outside`: columns that nothing explains, among other columns; defined: functions by name.
    """

    factors: tuple[str, ...]
    columns: Mapping[str, int]
    paths: tuple[Path, ...]
    outside: tuple[str, ...]
    defined: Mapping[str, Callable[[Mapping[str, complex]], complex]]

    def indicators(self, factor: str) -> tuple[str, ...]:
        """The names of what loads on a factor, in the order of the text."""
        return tuple(p.right for p in self.paths if p.op == LOADING and p.left == factor)


def path_model(text: str, study: Columns, names: tuple[str, ...], std_lv: bool) -> PathModel:
    """Of a text. names: the study's columns, by place. Raises InvalidFormula."""
    if len(text) > MOST_TEXT:
        raise InvalidFormula(
            f"The model has {len(text)} characters, more than {MOST_TEXT}: leave out what is not "
            "needed."
        )
    lines = [_parts(line) for line in _lines(text)]
    factors = tuple(dict.fromkeys(left for left, op, _ in lines if op == LOADING))
    columns: dict[str, int] = {}

    def name(word: str) -> str:
        if word in factors:
            return word
        place = study.one(word)
        columns.setdefault(names[place], place)
        return names[place]

    written = [
        replace(path, left=name(path.left), right=name(path.right))
        for left, op, right in lines
        if op != DEFINED
        for path in _items(left, op, right)
    ]
    _distinct(written)
    clash = next((f for f in factors if f in names), None)
    if clash is not None:
        raise InvalidFormula(
            f"{shortened(clash)} is a column of the study: give the factor another name."
        )
    if not written:
        raise InvalidFormula("The model has no line such as 'f =~ x1 + x2 + x3' or 'y ~ x'.")
    scaled = _scaled(written, factors, std_lv)
    outside, defaults = _defaults(scaled, factors, tuple(columns))
    labels = {path.label for path in scaled if path.label}
    defined = {
        left: _function(right, labels | {each for each, op, _ in lines[:k] if op == DEFINED})
        for k, (left, op, right) in enumerate(lines)
        if op == DEFINED
    }
    return PathModel(factors, columns, (*scaled, *defaults), outside, defined)


def _lines(text: str) -> Iterator[str]:
    for raw in re.split(r"[;\n]", text):
        line = raw.split("#")[0].strip()
        if line:
            yield line


def _parts(line: str) -> tuple[str, str, str]:
    if "==" in line or "<" in line or ">" in line:
        raise InvalidFormula(
            f"{shortened(line)}: write equal parameters with one label, 'f =~ a*x1 + a*x2'."
        )
    op = next((each for each in _OPERATORS if each in line), None)
    if op is None:
        raise InvalidFormula(f"{shortened(line)}: a line has one of =~, ~, ~~ and :=.")
    left, _, right = line.partition(op)
    if not left.strip() or not right.strip():
        raise InvalidFormula(f"{shortened(line)}: a term is missing beside {op}.")
    return left.strip(), op, right.strip()


def _items(left: str, op: str, right: str) -> Iterator[Path]:
    for item in quoted_split(right, "+"):
        *modifiers, last = (part.strip() for part in quoted_split(item, "*"))
        if len(modifiers) > 1 or not last:
            raise InvalidFormula(f"{shortened(item)}: write a term as 'x', 'label*x' or '0.5*x'.")
        if last in {"0", "1"}:
            raise InvalidFormula("Means and intercepts are not part of the model: leave them out.")
        yield _modified(Path(left, op, last), modifiers[0] if modifiers else "")


def _modified(path: Path, modifier: str) -> Path:
    if not modifier:
        return path
    if modifier == "NA":
        return replace(path, freed=True)
    if _NUMBER.fullmatch(modifier):
        number = float(modifier)
        if number and not _SMALLEST <= abs(number) <= _LARGEST:
            raise InvalidFormula(
                f"{shortened(modifier)}: a fixed number is 0 or from {_SMALLEST:g} to "
                f"{_LARGEST:g} in size."
            )
        return replace(path, fixed=number)
    if _NAME.fullmatch(modifier):
        return replace(path, label=modifier)
    raise InvalidFormula(f"{shortened(modifier)}: before '*' stands a number, NA or a label.")


def _distinct(paths: list[Path]) -> None:
    seen: set[object] = set()
    for path in paths:
        key = path.ends if path.op == COVARIANCE else (path.op, path.left, path.right)
        if key in seen or (path.op != COVARIANCE and path.left == path.right):
            raise InvalidFormula(
                f"{shortened(str(path))} stands twice in the model, or explains itself."
            )
        seen.add(key)


def _scaled(paths: list[Path], factors: tuple[str, ...], std_lv: bool) -> list[Path]:
    """With each factor's first loading at 1, where it is not modified, and what has its label too;
    or with each factor's variance at 1.
    """
    first: dict[str, int] = {}
    for k, path in enumerate(paths):
        if path.op == LOADING:
            first.setdefault(path.left, k)
    held = set() if std_lv else {first[f] for f in factors}
    scaled = [
        replace(p, fixed=1.0) if k in held and not p.freed and p.fixed is None else p
        for k, p in enumerate(paths)
    ]
    same = {p.label: p.fixed for p in scaled if p.label and p.fixed is not None}
    scaled = [replace(p, fixed=same.get(p.label, p.fixed)) for p in scaled]
    open_ones = [f for f in factors if std_lv and not _has(paths, f, f)]
    return [*scaled, *(Path(f, COVARIANCE, f, fixed=1.0) for f in open_ones)]


def _has(paths: list[Path], one: str, other: str) -> bool:
    return any(p.ends == (COVARIANCE, frozenset((one, other))) for p in paths)


def _defaults(
    paths: list[Path], factors: tuple[str, ...], columns: tuple[str, ...]
) -> tuple[tuple[str, ...], list[Path]]:
    """Columns that nothing explains and explain something, and the parameters without a line."""
    responses = {p.left for p in paths if p.op == SLOPE}
    regressors = {p.right for p in paths if p.op == SLOPE}
    indicators = {p.right for p in paths if p.op == LOADING}
    free = tuple(f for f in factors if f not in responses | indicators)
    outside = tuple(c for c in columns if c in regressors - responses - indicators)
    last = tuple(n for n in (*factors, *columns) if n in responses - regressors - indicators)
    pairs = [(n, n) for n in (*columns, *factors)]
    pairs += [pair for group in (free, outside, last) for pair in combinations(group, 2)]
    wanted = [Path(a, COVARIANCE, b) for a, b in pairs if not _has(paths, a, b)]
    return outside, wanted


def _function(text: str, labels: set[str]) -> Callable[[Mapping[str, complex]], complex]:
    """Of labels, by + - * / ^ and brackets. Raises InvalidFormula."""
    if len(text) > MOST_EXPRESSION:
        raise InvalidFormula(
            f"{shortened(text)}: an expression has at most {MOST_EXPRESSION} characters: give "
            "parts of it names of their own with :=."
        )
    try:
        tree = ast.parse(text.replace("^", "**"), mode="eval")
        nodes = list(ast.walk(tree))
        numbers = [float(n.value) for n in nodes if isinstance(n, ast.Constant)]  # type: ignore[arg-type]
        plain = all(type(n.value) in {int, float} for n in nodes if isinstance(n, ast.Constant))
    except (
        SyntaxError,
        TypeError,
        ValueError,
        OverflowError,
        MemoryError,
        RecursionError,
    ) as error:
        raise InvalidFormula(
            f"{shortened(text)}: write an expression of labels, such as a*b."
        ) from error
    unknown = {n.id for n in nodes if isinstance(n, ast.Name)} - labels
    if (
        unknown
        or not (plain and all(map(isfinite, numbers)))
        or not all(isinstance(n, _ARITHMETIC) for n in nodes)
    ):
        raise InvalidFormula(
            f"{shortened(text)}: write an expression of the labels "
            f"{shortened(', '.join(sorted(labels))) or '(none)'}."
        )
    return lambda values: _value(tree.body, values)


def _value(node: ast.expr, values: Mapping[str, complex]) -> complex:
    """Of an expression whose nodes are all arithmetic, in floating point: powers of integers have
    no end. Raises ArithmeticError.
    """
    match node:
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.Name(id=label):
            return values[label]
        case ast.UnaryOp(op=sign, operand=inner):
            return _value(inner, values) * (-1 if isinstance(sign, ast.USub) else 1)
        case ast.BinOp(left=one, op=op, right=other):
            return _BINARY[type(op)](_value(one, values), _value(other, values))
    raise InvalidFormula("Write an expression of labels, such as a*b.")
