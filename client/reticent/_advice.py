# SPDX-License-Identifier: Apache-2.0
"""What to do about a refused query: the columns that there are not, and the place in its text."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

from reticent._caret import pointed
from reticent._errors import InvalidFormula, InvalidQuery

_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
_WORD = re.compile(r"(?<![\w.])([A-Za-z_][\w.]*)(?![\w.]|\s*\(|\s*=(?!=))")
_LANGUAGE = frozenset(("and", "or", "not", "in", "is", "Sum", "Helmert", "Treatment"))
_MOST_NAMED = 20


@contextmanager
def on_columns(query: Mapping[str, Any], names: Sequence[str]) -> Iterator[None]:
    """Adds to a refusal of a query which of the columns it names are not among `names`, and the
    text that the sentence is about with a caret under the place.
    """
    try:
        yield
    except (InvalidQuery, InvalidFormula) as refusal:
        absent = [word for word in dict.fromkeys(_words(query)) if word not in names]
        detail = f"{refusal.detail} {_sentence(absent[0], names)}" if absent else refusal.detail
        text = pointed(detail, query)
        if text == refusal.detail:
            raise
        better = type(refusal)(
            detail,
            status=refusal.status,
            code=refusal.code,
            idempotency_key=refusal.idempotency_key,
        )
        better.args = (text,)
        raise better from None


def _sentence(word: str, names: Sequence[str]) -> str:
    near = get_close_matches(word, names, n=1)
    if near:
        return f"There is no column {word}; did you mean {near[0]}?"
    more = ", …" if len(names) > _MOST_NAMED else ""
    return f"There is no column {word}; the columns are {', '.join(names[:_MOST_NAMED])}{more}."


def _words(query: Mapping[str, Any]) -> Iterator[str]:
    """What a query names as columns, a model inside it included."""
    for field, value in query.items():
        if isinstance(value, Mapping):
            yield from _words(value)
        elif field == "column":
            yield str(value)
        elif field == "columns":
            yield from map(str, value)
        elif field in {"formula", "where"}:
            found = _WORD.findall(_QUOTED.sub("", str(value)))
            yield from (word for word in found if word not in _LANGUAGE)
