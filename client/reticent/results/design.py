# SPDX-License-Identifier: Apache-2.0
"""A fit's design columns on new data, from the terms' names alone.

The names of released terms say what each column is: products of values, `log(x)`, `I(x**2)`, and
the indicators `g[b]` of a factor's levels (factor_levels), joined by `:`. So no formula is
multiplied out again here, and the coding is the server's. `poly` and `bs` stand on declared bounds,
which a release does not hold: they are refused.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any

import narwhals
import numpy as np
from numpy.typing import NDArray

from reticent._dates import date_days, months, years
from reticent._errors import InvalidFormula
from reticent.results.factor_levels import (
    BASELINE,
    NAME,
    Indicator,
    indicator,
    term_pieces,
)

FloatArray = NDArray[np.float64]
Frame = Mapping[str, Any]
INTERCEPT = "Intercept"
_SPELLED = r"-?[0-9.]+(?:e[+-]?[0-9]+)?"
_CALL = re.compile(r"(log|log1p|log10|sqrt|exp|I|year|month)\((.*)\)", re.DOTALL)
_SHIFTED = re.compile(
    rf"(?:center|scale)\((.*), at=({_SPELLED})(?:, by=({_SPELLED}))?\)", re.DOTALL
)
_SINCE = re.compile(r"days_since\((.*), \"([0-9-]+)\"\)", re.DOTALL)
_POWER = re.compile(r"(.*)\*\*(-?[0-9.eE+-]+)", re.DOTALL)
_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "log": np.log,
    "log1p": np.log1p,
    "log10": lambda x: np.log(x) / np.log(10.0),
    "sqrt": np.sqrt,
    "exp": np.exp,
    "I": lambda x: x,
    "year": years,
    "month": months,
}
_STEP = 1e-30
"""Of complex-step derivatives: far below rounding, so that their only error is rounding (Squire &
Trapp, 1998).
"""


class Design:
    """p columns by their terms' names. Raises InvalidFormula for a column that new data cannot
    give. baselines: the level without a term, by factor; of releases of earlier versions it is not
    known, and one unknown level is then taken for it.
    """

    def __init__(self, terms: Sequence[str], baselines: Mapping[str, str] | None = None) -> None:
        self._baselines = dict(baselines or {})
        self._terms = [
            [] if term == INTERCEPT else [_piece(text) for text in term_pieces(term)]
            for term in terms
        ]

    @property
    def factors(self) -> dict[str, tuple[str, ...]]:
        """The levels that have an indicator, by factor; a baseline has none."""
        found: dict[str, dict[str, None]] = {}
        for piece in (piece for pieces in self._terms for piece in pieces):
            if isinstance(piece, Indicator) and piece.level is not None:
                found.setdefault(piece.column, {})[piece.level] = None
        return {column: tuple(levels) for column, levels in found.items()}

    def has_baseline(self, factor: str) -> bool:
        """Whether a factor has a level without an indicator. Raises InvalidFormula where the names
        do not tell.

        It has where every product with an indicator stands beside the same product without it, the
        rule of the coding; where no such product is there, every level has an indicator.
        """
        if self._factor(factor).contrast is not None:
            return True
        bare = [
            [p for p in pieces if not (isinstance(p, Indicator) and p.column == factor)]
            for pieces in self._terms
            if any(isinstance(p, Indicator) and p.column == factor for p in pieces)
        ]
        alone = [rest for rest in bare if rest not in self._terms]
        if alone and (
            len(alone) < len(bare) or any(isinstance(p, Indicator) for rest in alone for p in rest)
        ):
            raise InvalidFormula(f"The terms do not show how the levels of {factor} are coded.")
        return not alone

    def _factor(self, column: str) -> Indicator:
        """A factor's first column: all of them have one grouping and one contrast."""
        pieces = (p for pieces in self._terms for p in pieces)
        return next(p for p in pieces if isinstance(p, Indicator) and p.column == column)

    @property
    def numbers(self) -> tuple[str, ...]:
        """The numeric columns, in the order of the terms."""
        texts = [p for pieces in self._terms for p in pieces if isinstance(p, str)]
        return tuple(dict.fromkeys(_column(text) for text in texts))

    def beside(self, factor: str) -> tuple[str, ...]:
        """The numeric columns that stand in a product with a factor's levels."""
        products = [
            pieces
            for pieces in self._terms
            if any(isinstance(p, Indicator) and p.column == factor for p in pieces)
        ]
        texts = [p for pieces in products for p in pieces if isinstance(p, str)]
        return tuple(dict.fromkeys(_column(text) for text in texts))

    def rows(self, frame: Frame) -> FloatArray:
        """(n, p) of new data. Missing cells and values outside of a function's domain give NaN."""
        return np.asarray(self._rows(frame, "").real)

    def derivative(self, frame: Frame, name: str) -> FloatArray:
        """(n, p) derivatives of the columns by one numeric column."""
        return np.asarray(self._rows(frame, name).imag / _STEP)

    def completed(self, frame: Frame) -> Frame:
        """Columns by name, with the months and years that are factors, where it has their dates.
        Raises InvalidFormula of what has no columns.
        """
        frame = columns_of(frame)
        parts = [name for name in self.factors if name not in frame and _CALL.fullmatch(name)]
        read = [name for name in parts if _column(name) in frame]
        return {**frame, **{name: _number(name, frame, "").real for name in read}}

    def _rows(self, frame: Frame, moved: str) -> NDArray[np.complex128]:
        frame = self.completed(frame)
        needed = [*self.numbers, *self.factors]
        n = _length(frame, needed)
        self._check_levels(frame)
        X = np.ones((n, len(self._terms)), dtype=np.complex128)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            for j, pieces in enumerate(self._terms):
                for piece in pieces:
                    X[:, j] *= self._value(piece, frame, moved)
        return X

    def _value(self, piece: str | Indicator, frame: Frame, moved: str) -> NDArray[np.complex128]:
        if not isinstance(piece, Indicator):
            return _number(piece, frame, moved)
        texts, levels = _texts(frame[piece.column]), self.factors.get(piece.column, ())
        number = {text: piece.number(piece.grouped(text), levels) for text in set(texts)}
        return np.array([number[text] for text in texts], dtype=np.complex128)

    def _check_levels(self, frame: Frame) -> None:
        for column, levels in self.factors.items():
            grouped = map(self._factor(column).grouped, _texts(frame[column]))
            others = sorted({x for x in grouped if x not in levels and x != ""})
            known = self._baselines.get(column)
            if known is not None and self.has_baseline(column):
                self._check_known(column, (*levels, known), others)
            elif len(others) > self.has_baseline(column):
                raise InvalidFormula(
                    f"{column} has the levels {', '.join(levels)} and at most one baseline in "
                    "this fit; "
                    f"{', '.join(others)} cannot all be it."
                )

    @staticmethod
    def _check_known(column: str, levels: Sequence[str], found: Sequence[str]) -> None:
        unknown = [level for level in found if level not in {*levels, BASELINE}]
        if unknown:
            raise InvalidFormula(
                f"{column} has no level {', '.join(unknown)} in this fit: its levels are "
                f"{', '.join(levels)}, of which {levels[-1]} is the baseline."
            )


def columns_of(frame: Any) -> Any:
    """Columns by name of a mapping, a data frame of any library, or a list of records. Raises
    InvalidFormula.
    """
    if hasattr(frame, "keys"):
        return frame
    if isinstance(frame, list | tuple) and frame and all(isinstance(r, Mapping) for r in frame):
        names = dict.fromkeys(name for record in frame for name in record)
        return {name: [record.get(name) for record in frame] for name in names}
    try:
        found = narwhals.from_native(frame, eager_only=True)
    except TypeError:
        raise InvalidFormula(
            'New data are columns by name: a data frame, {"x": [1, 2], "g": ["a", "b"]}, or a list '
            'of records, [{"x": 1, "g": "a"}].'
        ) from None
    return dict(found.to_dict(as_series=False))


def _piece(text: str) -> str | Indicator:
    if text.startswith(("poly(", "bs(")):
        raise InvalidFormula(
            f"{text} stands on declared bounds, which this release does not hold: there are no "
            "predictions from it."
        )
    return indicator(text) or text


def _column(text: str) -> str:
    """The column that a value is made of."""
    if match := _SHIFTED.fullmatch(text) or _SINCE.fullmatch(text):
        return _column(match[1])
    if match := _CALL.fullmatch(text) or _POWER.fullmatch(text):
        return _column(match[2] if match.re is _CALL else match[1])
    if text.startswith("(") and text.endswith(")"):
        return _column(text[1:-1])
    if not re.fullmatch(NAME, text):
        raise InvalidFormula(f"{text} cannot be evaluated on new data.")
    return text.strip("`")


def _number(  # noqa: PLR0911 - one for each sort of value
    text: str, frame: Frame, moved: str
) -> NDArray[np.complex128]:
    if match := _SHIFTED.fullmatch(text):
        return (_number(match[1], frame, moved) - float(match[2])) / float(match[3] or 1)
    if match := _SINCE.fullmatch(text):
        return _number(match[1], frame, moved) - date_days(match[2])
    if match := _CALL.fullmatch(text):
        argument = _number(match[2], frame, moved)
        value = np.asarray(_FUNCTIONS[match[1]](argument), dtype=np.complex128)
        # A negative argument has a complex logarithm or root, and no real one.
        out = match[1] in {"log", "log1p", "log10", "sqrt"} and argument.real < -(
            match[1] == "log1p"
        )
        return np.where(out, np.nan, value)
    if match := _POWER.fullmatch(text):
        base, power = _number(match[1], frame, moved), float(match[2])
        if power.is_integer():
            return np.asarray(base ** int(power))
        return np.where(base.real < 0, np.nan, base**power)
    if text.startswith("("):
        return _number(text[1:-1], frame, moved)
    name = text.strip("`")
    try:
        values = np.array([_cell(x) for x in np.atleast_1d(frame[name])], dtype=np.complex128)
    except (TypeError, ValueError) as error:
        raise InvalidFormula(
            f"The new data's {name} holds a cell that is neither a number nor a date such as "
            "2020-01-31. A number that is given as a text is not read: convert the column first."
        ) from error
    return values + (1j * _STEP if name == moved else 0.0)


def _cell(value: Any) -> float:
    """A number; of a date, or its text, the days since 1970-01-01."""
    if _missing(value):
        return float("nan")
    return date_days(value) if isinstance(value, str | date | np.datetime64) else float(value)


def _missing(value: Any) -> bool:
    """Whether a cell is missing: None, NaN, NaT, or pandas' NA, which is equal to nothing and
    refuses to say so.
    """
    return value is None or type(value).__name__ == "NAType" or bool(value != value)  # noqa: PLR0124


def _texts(values: Any) -> list[str]:
    """Levels as texts: whole numbers without a point; missing ones empty."""
    return [_text(value) for value in np.atleast_1d(np.asarray(values, dtype=object))]


def _text(value: Any) -> str:
    if _missing(value):
        return ""
    if isinstance(value, bool | np.bool_ | float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def _length(frame: Frame, needed: Sequence[str]) -> int:
    absent = [name for name in needed if name not in frame]
    if absent:
        raise InvalidFormula(f"The new data lack {', '.join(absent)}.")
    lengths = {len(np.atleast_1d(frame[name])) for name in needed} or {_rows_of(frame)}
    if len(lengths) != 1:
        raise InvalidFormula("The columns of the new data differ in length.")
    return lengths.pop()


def _rows_of(frame: Frame) -> int:
    columns = [len(np.atleast_1d(frame[name])) for name in frame]
    return columns[0] if columns else 1
