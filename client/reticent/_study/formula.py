# SPDX-License-Identifier: Apache-2.0
"""Formulas over a study's columns: `y ~ a + b:c + d*e - f`, and `y ~ x | z` for instruments.

A factor names a column of the study, one of its variables with all of its columns (a factor's
levels, a basis), or in an interaction what the study's interactions are made of. Blanks do not
matter, and C(g) and C(g, ref="a") are g; C(g, Sum), merge(…) and lump(…) are written as the study's
columns are.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from reticent._errors import InvalidFormula
from reticent._text_pieces import QUOTES, quoted_split, shortened, walk
from reticent.results.factor_levels import term_pieces

_FACTOR = re.compile(
    r"""C\((`[^`]+`|[A-Za-z_][A-Za-z0-9_.]*|(?:merge|lump)\([^()]*\))"""
    r"""(?:,ref=(?:"[^"]*"|'[^']*'|[0-9]+))?\)"""
)

MOST_CROSSED = 8
"""Factors of a*b*…, which stands for one term fewer than 2 to their number."""


@dataclass(frozen=True, slots=True)
class Specification:
    """A formula's columns by place among the study's: response, terms in the order of writing,
    instruments (`|`).
    """

    text: str
    response: int
    terms: tuple[int, ...]
    intercept: bool
    instruments: tuple[int, ...] | None = None


class Columns:
    """A study's columns; names: (q,), the intercept first."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._pieces = [tuple(sorted(map(_plain, term_pieces(name)))) for name in names]

    def specification(self, text: str) -> Specification:
        """The formula's columns. Raises InvalidFormula with what the study has."""
        left, tilde, right = text.partition("~")
        if not tilde:
            raise InvalidFormula("Write a response, '~' and terms, such as 'y ~ x1 + x2'.")
        terms_text, *rest = quoted_split(right, "|")
        if len(rest) > 1:
            raise InvalidFormula("Write '|' once, before the instruments.")
        response = self.one(left)
        terms, intercept = self._sum(terms_text)
        instruments = self._sum(rest[0])[0] if rest else None
        if response in terms or response in (instruments or ()):
            raise InvalidFormula("The response is also among the terms: leave it out there.")
        if not terms and not intercept:
            raise InvalidFormula("The formula has no terms: name at least one after '~'.")
        return Specification(text, response, terms, intercept, instruments)

    def one(self, text: str) -> int:
        """The place of a text that names one column."""
        places = self.places(text)
        if len(places) != 1:
            raise InvalidFormula(
                f"{shortened(text)} has {len(places)} columns in this study; name one of "
                + ", ".join(self._names[k] for k in places)
                + "."
            )
        return places[0]

    def places(self, text: str) -> tuple[int, ...]:
        """The places of a term's columns."""
        wanted = [_plain(piece) for piece in term_pieces(text)]
        places = tuple(
            k
            for k, pieces in enumerate(self._pieces)
            if k > 0 and len(pieces) == len(wanted) and _matches(wanted, pieces)
        )
        if not places:
            raise InvalidFormula(
                f"{shortened(text)} is not in this study; its columns are "
                f"{', '.join(self._names[1:])}."
            )
        return places

    def _sum(self, text: str) -> tuple[tuple[int, ...], bool]:
        terms: dict[int, None] = {}
        intercept = True
        for sign, item in _signed(text):
            if item in {"0", "1"}:
                intercept = (item == "1") == (sign == "+")
                continue
            for place in self._crossed(item):
                if sign == "+":
                    terms[place] = None
                else:
                    terms.pop(place, None)
        return tuple(terms), intercept

    def _crossed(self, item: str) -> list[int]:
        """a*b is a + b + a:b."""
        factors = quoted_split(item, "*") if "**" not in _outside(item) else [item]
        if len(factors) > MOST_CROSSED:
            raise InvalidFormula(
                f"{shortened(item)}: a product has at most {MOST_CROSSED} factors; write the "
                "terms that you mean, with ':'."
            )
        chosen = [
            ":".join(f for f, use in zip(factors, uses, strict=True) if use)
            for uses in product((True, False), repeat=len(factors))
            if any(uses)
        ]
        chosen.sort(key=lambda name: len(quoted_split(name, ":")))
        return [place for name in chosen for place in self.places(name)]


def unsaid_indicators(
    variables: Mapping[str, Sequence[str]], used: Collection[str]
) -> tuple[str, ...]:
    """The columns missing(x) that terms `used` need beside them and have not. variables: a study's,
    columns by text.
    """
    needed = [
        name
        for names in variables.values()
        if any(not _is_indicator(k) and k in used for k in names)
        for name in names
        if _is_indicator(name) and name not in used
    ]
    return tuple(dict.fromkeys(needed))


def _is_indicator(name: str) -> bool:
    return name.startswith("missing(")


def _matches(wanted: Sequence[str], pieces: Sequence[str]) -> bool:
    """Whether each factor is one of the pieces, or all levels of it."""
    left = list(pieces)
    for factor in wanted:
        hit = next((p for p in left if p == factor or p.startswith(factor + "[")), None)
        if hit is None:
            return False
        left.remove(hit)
    return not left


def _plain(text: str) -> str:
    """Without blanks outside of quotes, and with g in place of C(g): the study has settled the
    reference.
    """
    kept, quote = [], ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in QUOTES:
            quote = character
        elif character.isspace():
            continue
        kept.append(character)
    return _FACTOR.sub(r"\1", "".join(kept))


def _outside(text: str) -> str:
    """What stands outside of brackets and quotes."""
    return "".join(character for character, depth in walk(text) if depth == 0)


def _signed(text: str) -> list[tuple[str, str]]:
    """(sign, item) of a sum."""
    items: list[tuple[str, str]] = []
    sign, item = "+", ""
    for character, depth in walk(text):
        if character in "+-" and depth == 0:
            if item.strip():
                items.append((sign, item.strip()))
                sign, item = character, ""
            elif character == "+" or sign == "-":
                raise InvalidFormula("A term is missing beside a '+' or '-' of the formula.")
            else:  # a sign of the first term, or of the term behind a plus: x + -1 is x - 1
                sign = character
        else:
            item += character
    if not item.strip():
        raise InvalidFormula("A term is missing at the end of the formula.")
    return [*items, (sign, item.strip())]
