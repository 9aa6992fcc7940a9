"""The query kinds of tables, quantiles and robust statistics, as the server reads them."""

from collections.abc import Callable, Iterable
from typing import Any

from reticent._checks import finite
from reticent._errors import InvalidQuery

Query = dict[str, Any]


def sum(column: str, where: str | None = None) -> Query:  # noqa: A001 - the kind's name
    return _query("sum", _texts(column=column, where=where))


def histogram(column: str, bins: Iterable[float] | None = None, where: str | None = None) -> Query:
    edges = None if bins is None else _numbers("bins", bins)
    return _query("histogram", _texts(column=column, where=where) | {"bins": edges})


def crosstab(columns: Iterable[str], where: str | None = None) -> Query:
    return _query("crosstab", _texts(where=where) | {"columns": _names(columns)})


def quantiles(
    column: str,
    probabilities: Iterable[float] = (0.25, 0.5, 0.75),
    where: str | None = None,
) -> Query:
    asked = {"probabilities": _numbers("probabilities", probabilities)}
    return _query("quantiles", _texts(column=column, where=where) | asked)


def iqr(column: str, mechanism: str = "quantiles", where: str | None = None) -> Query:
    return _query("iqr", _texts(column=column, mechanism=mechanism, where=where))


def median(column: str, mechanism: str = "exponential", where: str | None = None) -> Query:
    return _query("median", _texts(column=column, mechanism=mechanism, where=where))


def m_estimate(
    column: str,
    tuning: float | None = None,
    base: str = "uniform",
    lower: float | None = None,
    upper: float | None = None,
) -> Query:
    given = {"tuning": tuning, "lower": lower, "upper": upper}
    numbers = {k: None if v is None else _number(k, v) for k, v in given.items()}
    return _query("m_estimate", _texts(column=column, base=base) | numbers)


def depth_median(
    columns: Iterable[str],
    scale: str = "trimmed",
    eta: float | str | None = None,
    directions: int | None = None,
) -> Query:
    sharpness = eta if eta is None or isinstance(eta, str) else _number("eta", eta)
    number = None if directions is None else int(_number("directions", directions))
    more = {"columns": _names(columns), "eta": sharpness, "directions": number}
    return _query("depth_median", _texts(scale=scale) | more)


KINDS: dict[str, Callable[..., Query]] = {
    "sum": sum,
    "histogram": histogram,
    "crosstab": crosstab,
    "quantiles": quantiles,
    "iqr": iqr,
    "median": median,
    "m_estimate": m_estimate,
    "depth_median": depth_median,
}


def _query(kind: str, fields: Query) -> Query:
    return {"kind": kind} | {name: value for name, value in fields.items() if value is not None}


def _texts(**fields: str | None) -> Query:
    for name, value in fields.items():
        if not isinstance(value, str | None):
            raise InvalidQuery(f"{name} must be a text.")
    return dict(fields)


def _names(columns: Iterable[str]) -> list[str]:
    names = None if isinstance(columns, str) else _listed(columns)
    if names is None or not all(isinstance(name, str) for name in names):
        raise InvalidQuery("columns must be a list of columns' names.")
    return names


def _numbers(field: str, values: Iterable[float]) -> list[float]:
    listed = _listed(values)
    if listed is None:
        raise InvalidQuery(f"{field} must be a list of finite numbers.")
    return [_number(field, value) for value in listed]


def _number(field: str, value: Any) -> float:
    return finite(value, InvalidQuery(f"{field} must be finite."))


def _listed(values: Any) -> list[Any] | None:
    return list(values) if isinstance(values, Iterable) else None
