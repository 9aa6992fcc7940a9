# SPDX-License-Identifier: Apache-2.0
"""The queries of every kind's method: what is sent, and what is refused before anything is sent."""

from functools import partial
from inspect import isfunction, signature
from typing import Any

import numpy as np
import pytest

import reticent
from reticent._checks import NUMBER, TEXT, either, named, several, word
from reticent._queries import BUILDERS, build
from support.client.replying_server import Server

Fields = dict[str, Any]

SENT: list[tuple[tuple[Any, ...], Fields, Fields]] = [
    (("count",), {}, {}),
    (("sum", "y", "x > 0"), {}, {"column": "y", "where": "x > 0"}),
    (("histogram", "y", np.array([0, 1])), {}, {"column": "y", "bins": [0.0, 1.0]}),
    (("crosstab", (c for c in "gb")), {}, {"columns": ["g", "b"]}),
    (("quantiles", "y", [0.25, 0.5, 0.75]), {}, {"column": "y"}),
    (("quantiles", "y", (1, 0)), {}, {"column": "y", "probabilities": [1.0, 0.0]}),
    (("median", "y", None), {"where": None}, {"column": "y"}),
    (("iqr", "y", "ptr"), {}, {"column": "y", "mechanism": "ptr"}),
    (
        ("m_estimate", "y", 2, "cauchy", 0, 1),
        {"psi": "huber"},
        {"column": "y", "tuning": 2.0, "base": "cauchy", "lower": 0.0, "upper": 1.0},
    ),
    (
        ("depth_median", ["x"], "mad", "private", 4.0),
        {},
        {"columns": ["x"], "scale": "mad", "eta": "private", "directions": 4},
    ),
    (
        ("location_scale", "y"),
        {"tuning": "planned", "confidence_level": 0.9},
        {"column": "y", "tuning": "planned", "confidence_level": 0.9},
    ),
    (
        ("glm", "b ~ x", "binomial"),
        {"tuning": np.float32(2)},
        {"formula": "b ~ x", "family": "binomial", "tuning": 2.0},
    ),
    (
        ("linear_regression", "y ~ x"),
        {"mechanism": "newton", "loss": "tukey"},
        {"formula": "y ~ x", "loss": "tukey"},
    ),
    (
        ("test", "y ~ x + g", "x = 0, g[b]"),
        {"test": "lr"},
        {"kind": "hypothesis_test", "formula": "y ~ x + g"}
        | {"hypothesis": ["x = 0, g[b]"], "test": "lr"},
    ),
    (
        ("hypothesis_test", "y ~ x", [" x = 0 "]),
        {},
        {"formula": "y ~ x", "hypothesis": ["x = 0"]},
    ),
    (
        ("subsample_aggregate", "glm", "b ~ x", "binomial"),
        {"blocks": 9.0, "parameter_bounds": [(-1, 1)] * 2, "bias_correction": np.bool_(False)},
        {"model": {"kind": "glm", "formula": "b ~ x", "family": "binomial"}}
        | {"blocks": 9, "parameter_bounds": [[-1.0, 1.0]] * 2, "bias_correction": False},
    ),
    (
        ("subsample_aggregate", {"kind": "location_scale", "column": "y"}),
        {"confidence_level": 0.9},
        {"model": {"kind": "location_scale", "column": "y"}, "confidence_level": 0.9},
    ),
]
"""Arguments, fields, and the query that they make."""

REFUSED: list[tuple[tuple[Any, ...], Fields, str]] = [
    (("mean", ["price"]), {}, "column must be a text."),
    (("mean", None), {}, "column must be a text."),
    (("mean", "price", 1.0), {}, "where must be a text."),
    (("crosstab", "gb"), {}, "columns must be a list of columns' names."),
    (("crosstab", ["g", 1]), {}, "columns must be a list of columns' names."),
    (
        ("hazard_regression", "time", "status"),
        {},
        'formula must be a formula such as "Surv(time, event) ~ x1 + C(g)".',
    ),
    (("quantiles", "y", 0.5), {}, "probabilities must be a list of finite numbers."),
    (("quantiles", "y", [0.5, "1"]), {}, "probabilities must be a list of finite numbers."),
    (("histogram", "y", [0, float("inf")]), {}, "bins must be a list of finite numbers."),
    (("m_estimate", "y", True), {}, "tuning must be a finite number."),
    (("depth_median", ["x"], "mad", "p"), {}, 'eta must be a finite number, or "private".'),
    (("depth_median", ["x"]), {"directions": 2.5}, "directions must be a whole number."),
    (("depth_median", ["x"]), {"directions": 1e999}, "directions must be a whole number."),
    (
        ("glm", "b ~ x", "binomial"),
        {"tuning": "all"},
        'tuning must be a finite number, or "planned".',
    ),
    (("test", "y ~ x", [1]), {}, "hypothesis must be a list of texts."),
    (("location_scale", "y"), {"confidence_level": "a"}, "confidence_level must be a finite"),
    (("subsample_aggregate", {"a": 1}), {}, "model must be a query."),
    (("subsample_aggregate", "mean", "y"), {"blocks": "4"}, "blocks must be a whole number."),
    (("subsample_aggregate", "mean", "y"), {"bias_correction": 1}, "must be True or False."),
    (("subsample_aggregate", "mean", "y"), {"parameter_bounds": [1]}, "lists of finite numbers."),
    (("linear_regression",), {}, "do not fit a linear_regression: missing a required argument"),
    (("linear_regression", "y ~ x", None, "tukey"), {}, "too many positional arguments"),
    (("count",), {"wher": "x > 0"}, "count has no argument wher; did you mean where?"),
]


@pytest.mark.parametrize(("arguments", "fields", "query"), SENT)
def test_what_is_sent(arguments: tuple[Any, ...], fields: Fields, query: Fields) -> None:
    assert build(*arguments, **fields) == {"kind": arguments[0]} | query


@pytest.mark.parametrize(("arguments", "fields", "sentence"), REFUSED)
def test_what_is_refused(arguments: tuple[Any, ...], fields: Fields, sentence: str) -> None:
    with pytest.raises(reticent.InvalidQuery) as refused:
        build(*arguments, **fields)
    assert sentence in str(refused.value)


def test_every_builder_has_a_method() -> None:
    assert {name for name in BUILDERS if not callable(getattr(reticent.Dataset, name))} == set()


def test_checks_of_kinds_to_come() -> None:
    texts = named(TEXT)
    assert texts.checked("persons", {"y": "y ~ x"}) == {"y": "y ~ x"}
    for wrong in ("y", {"y": 1}, {1: "y"}, ["y"]):
        with pytest.raises(reticent.InvalidQuery, match="a mapping of names to texts"):
            texts.checked("persons", wrong)
    levels = either(NUMBER, several(NUMBER), word("all", "none"))
    assert [levels.checked("tau", each) for each in (0.5, (0.5, 1), "all")] == [
        0.5,
        [0.5, 1],
        "all",
    ]
    sentence = 'tau must be a finite number, or a list of finite numbers, or "all" or "none".'
    for wrong in ("some", [0.5, "all"], None):
        with pytest.raises(reticent.InvalidQuery) as refused:
            levels.checked("tau", wrong)
        assert str(refused.value) == sentence


def takes_any(method: Any) -> bool:
    """Whether a method hands further arguments on to another one."""
    return any(p.kind is p.VAR_KEYWORD for p in signature(method).parameters.values())


METHODS = [n for n, m in vars(reticent.Dataset).items() if isfunction(m) and not n.startswith("_")]
METHODS = [n for n in METHODS if not takes_any(getattr(reticent.Dataset, n))]


@pytest.mark.parametrize("name", METHODS)
def test_an_unknown_argument_is_named_with_the_nearest(name: str, server: Server) -> None:
    """Of each method: in a sentence, before anything is sent."""
    ds = server.dataset()
    asked = len(server.requests)
    with pytest.raises(reticent.InvalidQuery, match=f"{name} has no argument unheard"):
        getattr(ds, name)(unheard=1)
    assert len(server.requests) == asked


@pytest.mark.parametrize("kind", ["crosstab", "t_test", "correlation"])
def test_weights_are_refused_with_the_kinds_that_have_them(kind: str, server: Server) -> None:
    ds = server.dataset()
    for ask in (getattr(ds, kind), partial(ds.plan, kind), partial(ds.ask, kind)):
        with pytest.raises(
            reticent.InvalidQuery, match=f"{kind} has no argument weights.* is one of .*mean"
        ):
            ask(["a", "b"], weights="w", epsilon=1.0)


@pytest.mark.parametrize("named", ["logit", "ols"])
def test_models_by_name_refuse_in_a_sentence(named: str, server: Server) -> None:
    with pytest.raises(reticent.InvalidQuery, match="no argument tunning; did you mean tuning"):
        getattr(server.dataset(), named)("new ~ grade", tunning=1.0, epsilon=1.0)
