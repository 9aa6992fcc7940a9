"""The query kinds as the server reads them; one function each, shared by releases and plans."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from reticent import _queries_robust
from reticent._checks import finite as _number
from reticent._errors import InvalidPrivacy, InvalidQuery
from reticent._hypothesis_grammar import split

Query = dict[str, Any]


def count(where: str | None = None) -> Query:
    return _query("count", where=where)


def mean(column: str, where: str | None = None) -> Query:
    return _query("mean", column=column, where=where)


def linear_regression(
    formula: str,
    where: str | None = None,
    tuning: float | str | None = None,
    ridge: float | None = None,
    mechanism: str | None = None,
    calibration: str | None = None,
    loss: str | None = None,
) -> Query:
    c = _tuning(tuning)
    fields: dict[str, Any] = {
        "formula": formula,
        "where": where,
        "tuning": c,
        "mechanism": mechanism,
    }
    if loss is not None:
        fields["loss"] = loss
    if ridge is not None:
        fields["ridge"] = _number(ridge, InvalidQuery("ridge must be a finite number."))
    return _query("linear_regression", calibration=calibration, **fields)


def glm(
    formula: str,
    family: str,
    where: str | None = None,
    tuning: float | str | None = None,
    mechanism: str | None = None,
    calibration: str | None = None,
    dispersion: float | None = None,
) -> Query:
    c = _tuning(tuning)
    fields: dict[str, Any] = {"formula": formula, "family": family, "where": where, "tuning": c}
    fields["dispersion"] = _dispersion(dispersion)
    return _query("glm", mechanism=mechanism, calibration=calibration, **fields)


def _tuning(c: float | str | None) -> float | str | None:
    """A number, or "planned"."""
    if c is None or c == "planned":
        return c
    return _number(c, InvalidQuery('tuning must be a finite number, or "planned".'))


def _dispersion(alpha: float | None) -> float | None:
    wrong = InvalidQuery("dispersion must be a finite number.")
    return None if alpha is None else _number(alpha, wrong)


def location_scale(
    column: str,
    where: str | None = None,
    tuning: float | str | None = None,
    mechanism: str | None = None,
    calibration: str | None = None,
) -> Query:
    fields = {"column": column, "where": where, "tuning": _tuning(tuning)}
    return _query("location_scale", mechanism=mechanism, calibration=calibration, **fields)


def hypothesis_test(
    formula: str,
    hypothesis: str | Sequence[str] | None = None,
    *,
    test: str = "wald",
    family: str | None = None,
    where: str | None = None,
    tuning: float | None = None,
    dispersion: float | None = None,
) -> Query:
    c = None if tuning is None else _number(tuning, InvalidQuery("tuning must be a finite number."))
    model = {"formula": formula, "family": family, "where": where, "tuning": c}
    query = _query("hypothesis_test", test=test, dispersion=_dispersion(dispersion), **model)
    if hypothesis is None:
        return query
    texts = split(hypothesis) if isinstance(hypothesis, str) else list(hypothesis)
    if not all(isinstance(text, str) for text in texts):
        raise InvalidQuery("hypothesis must be a text, or several.")
    return query | {"hypothesis": [text.strip() for text in texts]}


def subsample_aggregate(
    model: str | Callable[..., Any] | Mapping[str, Any],
    *arguments: Any,
    blocks: int | None = None,
    parameter_bounds: Iterable[Sequence[float]] | None = None,
    bias_correction: bool = True,
    **fields: Any,
) -> Query:
    """model, arguments, fields: as in `build`; or model a query."""
    wrong = InvalidQuery("parameter_bounds must be a list of two finite numbers each.")
    asked = dict(model) if isinstance(model, Mapping) else build(model, *arguments, **fields)
    query: Query = {"kind": "subsample_aggregate", "model": asked}
    if blocks is not None:
        query["blocks"] = int(_number(blocks, InvalidQuery("blocks must be a whole number.")))
    if parameter_bounds is not None:
        pairs = [list(pair) for pair in parameter_bounds if isinstance(pair, Iterable)]
        query["parameter_bounds"] = [[_number(v, wrong) for v in pair] for pair in pairs]
    return query | {"bias_correction": bool(bias_correction)}


KINDS: dict[str, Callable[..., Query]] = {
    "count": count,
    "mean": mean,
    "linear_regression": linear_regression,
    "glm": glm,
    "location_scale": location_scale,
    "test": hypothesis_test,
    "hypothesis_test": hypothesis_test,
    "subsample_aggregate": subsample_aggregate,
    **_queries_robust.KINDS,
}


def build(kind: str | Callable[..., Any], *arguments: Any, **fields: Any) -> Query:
    """The query of a kind's name, or of the data set's method of that name."""
    name = kind if isinstance(kind, str) else getattr(kind, "__name__", "")
    if name not in KINDS:
        near = get_close_matches(name, KINDS, n=1)
        advice = f" Did you mean {near[0]}?" if near else ""
        raise InvalidQuery(f"The kind of a query is one of {', '.join(KINDS)}.{advice}")
    try:
        return KINDS[name](*arguments, **fields)
    except TypeError as error:
        raise InvalidQuery(f"The arguments do not fit a {name}: {error}.") from error


def body(
    dataset: str, query: Query, epsilon: float, delta: float | None, project: str | None = None
) -> dict[str, Any]:
    """The request for a plan or a release. Raises InvalidPrivacy for what is no finite number."""
    privacy = {"epsilon": _number(epsilon, InvalidPrivacy("epsilon must be a finite number."))}
    if delta is not None:
        privacy["delta"] = _number(delta, InvalidPrivacy("delta must be a finite number."))
    asked = {"dataset": dataset, "query": query, "privacy": privacy}
    return asked if project is None else asked | {"project": project}


def planned(
    dataset: str,
    kind: str,
    *arguments: Any,
    epsilon: float,
    delta: float | None = None,
    **fields: Any,
) -> dict[str, Any]:
    """A query for the plan of `Client.request_project`; asks nothing. The arguments are those of the
    query's method.

    >>> reticent.planned("houses", "mean", "price", epsilon=0.5)
    """
    return body(dataset, build(kind, *arguments, **fields), epsilon, delta)


def _query(kind: str, **fields: Any) -> Query:
    given = {name: value for name, value in fields.items() if value is not None}
    for name, value in given.items():
        if not isinstance(value, str | float):
            raise InvalidQuery(f"{name} must be a text.")
    return {"kind": kind} | given
