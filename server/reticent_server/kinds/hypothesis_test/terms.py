# SPDX-License-Identifier: Apache-2.0
"""The terms of a model for its table: a factor's dummies are tested together (as R's drop1
does)."""

import re
from collections.abc import Sequence

from reticent_server.domain.design import (
    Apply,
    Coded,
    EventTime,
    Expression,
    Indicator,
    PersonMean,
    Term,
)
from reticent_server.domain.hypothesis import LinearHypothesis

_LEVEL = re.compile(r"\[[^\[\]]*\](?=$|:)")


def term_hypotheses(terms: Sequence[Term], intercept: bool) -> list[tuple[str, LinearHypothesis]]:
    """(name, all of its coefficients are 0) for each term of the formula; not for the intercept."""
    head, q = int(intercept), int(intercept) + len(terms)
    groups: dict[tuple[str, ...], list[int]] = {}
    for position, term in enumerate(terms):
        groups.setdefault(tuple(_kind(f) for f in term.factors), []).append(head + position)
    hypotheses = []
    for members in groups.values():
        names = [terms[k - head].name for k in members]
        rows = tuple(tuple(float(j == k) for j in range(q)) for k in members)
        texts = tuple(f"{name} = 0" for name in names)
        label = _LEVEL.sub("", names[0])
        hypotheses.append((label, LinearHypothesis(texts, rows, (0.0,) * len(members))))
    return hypotheses


def _kind(factor: Expression) -> str:
    """The same for all levels of a factor, and for all functions of a basis."""
    match factor:
        case Indicator(column=column) | Coded(column=column):
            return f"level of {column}"
        case Apply(function=function, argument=argument, basis=basis) if basis:
            return f"{function} {basis} of {_kind(argument)}"
        case Apply(function=function, argument=argument, parameter=parameter):
            return f"{function} {parameter} of {_kind(argument)}"
        case EventTime(time=time, since=since):
            return f"{time} since {since}"
        case PersonMean(name=name):
            return f"mean {name}"
        case _:
            return f"value of {factor.column}"
