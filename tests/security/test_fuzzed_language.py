# SPDX-License-Identifier: Apache-2.0
"""The model language is data: whatever is written in it gives a plan or a clear refusal, soon.

Time is the processor's for this thread, so that a busy machine fails nothing.
"""

import time
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Plan
from reticent_server.domain.query import Privacy, Query
from reticent_server.errors import InvalidFormula, ReticentError
from reticent_server.kinds.count.kind import Count
from reticent_server.kinds.shared.linear.query import LinearRegression
from reticent_server.pipeline import planning
from support.installations.small import Installation, opened

# five times the slowest text on a busy machine; what grows with the square of a text takes seconds
SECONDS = 0.25
PRIVACY = Privacy(1.0, 1e-6)
WORDS = [
    *("y", "x", "k", "g", "b", "m", "C(g)", "C(k)", "C(", "I(", "I(x**2)", "log(k)", "exp(x)"),
    *(
        "sqrt(",
        "poly(x, 3)",
        "poly(",
        "bs(x, df=5)",
        "bs(",
        "`x",
        "and",
        "or",
        "not",
        "in",
        "not in",
    ),
    *"~+-*:(),<>=/^|&01'\"`.[]{}\\%;",
    *(
        "**",
        "==",
        "!=",
        "<=",
        ">=",
        '"a"',
        "'c'",
        "-1.5",
        "1e308",
        "1e-308",
        "nan",
        "inf",
        "9" * 40,
    ),
    *("\0", "\n", "\u202e", "\N{FULLWIDTH LATIN SMALL LETTER X}", "\U0001f600", "\udcff"),
    *("lambda", "__class__", "__import__('os')", "x.real", "x[0]", "None", "True", "f'{x}'"),
]
garbage = st.text(max_size=80) | st.lists(st.sampled_from(WORDS), max_size=40).map(" ".join)
sums = st.recursive(
    st.sampled_from(["x", "b", "m", "g", "k", "C(g)", "C(k)", "I(x**2)", "1", "0"]),
    lambda inner: st.tuples(inner, st.sampled_from("+-*:"), inner).map(
        lambda parts: f"({' '.join(parts)})"
    ),
    max_leaves=25,
)
conditions = st.recursive(
    st.sampled_from(["x > .5", 'g == "a"', 'g in ("a", "b")', "3 <= k", "b != 1", "-1 < x < 1"]),
    lambda inner: st.one_of(
        inner.map("not ({})".format),
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(" ".join).map("({})".format),
    ),
    max_leaves=25,
)
deep = st.tuples(
    st.sampled_from(["(", "not ", "x + ", "x:", "x*", "-", "log(", "b == 1 and ", "9"]),
    st.integers(1, 30_000),
    st.sampled_from(["", "x", "b == 1", ")"]),
).map(lambda parts: parts[0] * parts[1] + parts[2])
texts = garbage | sums | conditions | deep | st.text(alphabet="xb:*+()~ 01<=", max_size=3_000)


@pytest.fixture(scope="module")
def facts(installation_template: Installation) -> Iterator[DatasetFacts]:
    with opened(installation_template.settings) as services:
        yield services.catalog.facts("people")


def answered(facts: DatasetFacts, query: Query) -> tuple[Plan | ReticentError, float]:
    """(plan, or a refusal; seconds)."""
    started = time.thread_time()
    try:
        found: Plan | ReticentError = planning.plan(facts, query, PRIVACY)
    except ReticentError as error:
        found = error
    return found, time.thread_time() - started


def is_clear(found: Plan | ReticentError) -> bool:
    """A plan, or one printable sentence of a moderate length."""
    if isinstance(found, Plan):
        return True
    words = found.detail
    return (
        found.status in (403, 422)
        and words[-1:] == "."
        and words.isprintable()
        and len(words) < 400
    )


def check(facts: DatasetFacts, text: str) -> None:
    """As the terms of a model, as a whole formula, and as a predicate."""
    for query in (
        LinearRegression(f"y ~ {text}"),
        LinearRegression(text),
        Count(where=text),
    ):
        found, seconds = answered(facts, query)
        assert is_clear(found), text[:200]
        if seconds > SECONDS:  # the collector of garbage may have come by
            assert min(answered(facts, query)[1] for _ in range(2)) <= SECONDS, text[:200]


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=texts)
def test_a_plan_or_a_clear_refusal(facts: DatasetFacts, text: str) -> None:
    check(facts, text)


@pytest.mark.audit
@settings(max_examples=100_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=texts)
def test_a_hundred_thousand_formulas_and_predicates(facts: DatasetFacts, text: str) -> None:
    check(facts, text)


def test_both_outcomes_are_reached(facts: DatasetFacts) -> None:
    """Else the test could not fail."""
    assert isinstance(answered(facts, LinearRegression("y ~ x + C(g):k"))[0], Plan)
    assert isinstance(answered(facts, Count(where="k > 3 and not (b == 1)"))[0], Plan)
    assert isinstance(answered(facts, LinearRegression("y ~ " + "(" * 5))[0], InvalidFormula)
    assert isinstance(answered(facts, Count(where="x > > 1"))[0], InvalidFormula)
