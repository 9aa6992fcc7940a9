# SPDX-License-Identifier: Apache-2.0
"""Queries as the server reads them, from a kind's name and the arguments of its method."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from typing import Any

from reticent import _names
from reticent._checks import finite
from reticent._errors import InvalidPrivacy, InvalidQuery
from reticent._methods import QUESTIONS
from reticent._questions import Query


def hypothesis_test(
    formula: str, hypothesis: str | Sequence[str] | None = None, **fields: Any
) -> Query:
    """hypothesis: a text with one or more of them, or several texts."""
    texts: Any = [hypothesis] if isinstance(hypothesis, str) else hypothesis
    query = QUESTIONS["hypothesis_test"].asked(formula, hypothesis=texts, **fields)
    if "hypothesis" in query:
        query["hypothesis"] = [text.strip() for text in query["hypothesis"]]
    return query


def subsample_aggregate(
    model: str | Callable[..., Any] | Mapping[str, Any],
    *arguments: Any,
    blocks: int | None = None,
    parameter_bounds: Iterable[Sequence[float]] | None = None,
    bias_correction: bool = True,
    confidence_level: float = 0.95,
    **fields: Any,
) -> Query:
    """model, arguments, fields: as in `build`; or model a query."""
    asked = dict(model) if isinstance(model, Mapping) else build(model, *arguments, **fields)
    return QUESTIONS["subsample_aggregate"].asked(
        asked,
        blocks=blocks,
        parameter_bounds=parameter_bounds,
        bias_correction=bias_correction,
        confidence_level=confidence_level,
    )


def named(name: str, formula: str, where: str | None = None, **more: Any) -> Query:
    """A model by one of the names of `_names`."""
    kind, fields = _names.fields_of(name, more)
    return QUESTIONS[kind].asked(formula, where=where, **fields)


BUILDERS: Mapping[str, Callable[..., Query]] = {
    **{kind: question.asked for kind, question in QUESTIONS.items()},
    "hypothesis_test": hypothesis_test,
    "test": hypothesis_test,
    "subsample_aggregate": subsample_aggregate,
    **{name: partial(named, name) for name in _names.NAMED},
}
"""What makes a query of the arguments of the method of that name."""


def build(kind: str | Callable[..., Any], *arguments: Any, **fields: Any) -> Query:
    """The query of a kind's name, or of the data set's method of that name."""
    name = kind if isinstance(kind, str) else getattr(kind, "__name__", "")
    if name not in BUILDERS:
        near = get_close_matches(name, BUILDERS, n=1)
        advice = f" Did you mean {near[0]}?" if near else ""
        raise InvalidQuery(f"The kind of a query is one of {', '.join(BUILDERS)}.{advice}")
    try:
        return BUILDERS[name](*arguments, **fields)
    except TypeError as error:
        raise InvalidQuery(f"The arguments do not fit a {name}: {error}.") from error


def body(
    dataset: str,
    query: Query,
    epsilon: float | None,
    delta: float | None,
    project: str | None = None,
    protocol: str | None = None,
) -> dict[str, Any]:
    """The request for a plan or a release; epsilon None: the plan is to find it. Raises
    InvalidPrivacy for what is no finite number.
    """
    privacy = {}
    if epsilon is not None:
        privacy["epsilon"] = finite(epsilon, InvalidPrivacy("epsilon must be a finite number."))
    if delta is not None:
        privacy["delta"] = finite(delta, InvalidPrivacy("delta must be a finite number."))
    asked = {"dataset": dataset, "query": query, "privacy": privacy}
    named = {"project": project, "protocol": protocol}
    return asked | {name: value for name, value in named.items() if value is not None}


def is_answer(document: Any, asked: Mapping[str, Any]) -> bool:
    """Whether a reply's document is about the data set and the query that were asked. The server
    adds defaults, and leaves out what is null; what is no document is refused by its reader.
    """
    known = {"dataset": asked["dataset"], "query": asked["query"]}
    return not isinstance(document, Mapping) or _agrees(known, document)


def _agrees(sent: Any, found: Any) -> bool:
    if isinstance(sent, Mapping) and isinstance(found, Mapping):
        return all(_agrees(value, found[name]) for name, value in sent.items() if name in found)
    if isinstance(sent, list | tuple) and isinstance(found, list | tuple):
        return len(sent) == len(found) and all(map(_agrees, sent, found))
    return bool(sent == found)


def planned(
    dataset: str,
    kind: str,
    *arguments: Any,
    epsilon: float,
    delta: float | None = None,
    **fields: Any,
) -> dict[str, Any]:
    """A query for the plan of `Client.request_project`; asks nothing. The arguments are those of
    the query's method.

    >>> reticent.planned("houses", "mean", "price", epsilon=0.5)
    """
    return body(dataset, build(kind, *arguments, **fields), epsilon, delta)
