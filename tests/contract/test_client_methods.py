# SPDX-License-Identifier: Apache-2.0
"""The client's methods are those of the server's kinds, as they are now."""

import inspect
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

import reticent
from reticent._methods import QUESTIONS
from reticent._queries import build
from reticent.kinds import KINDS as RESULTS
from reticent_server.domain.query import query_json
from reticent_server.kinds import KINDS
from reticent_server.kinds.base import Kind

ROOT = Path(__file__).resolve().parents[2]
ASKED = [kind for kind in KINDS if kind.for_analysts]
EXAMPLES = [(kind, example) for kind in ASKED for example in kind.examples]


def test_the_methods_are_not_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import client_methods

    advice = "run: make generated"
    assert client_methods.TARGET.read_text("utf-8") == client_methods.source(), advice


def test_every_kind_has_a_question_a_method_and_a_class() -> None:
    names = {kind.name for kind in ASKED}
    assert names == set(QUESTIONS) == set(RESULTS)
    for name in names:
        method = getattr(reticent.Dataset, name)
        assert {"epsilon", "delta", "idempotency_key"} <= set(inspect.signature(method).parameters)


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("kind", "example"), EXAMPLES, ids=[f"{k.name}-{i}" for i, (k, _) in enumerate(EXAMPLES)]
)
def test_every_example_of_the_server_can_be_asked(kind: Kind[Any], example: Any) -> None:
    """The client's query of the example's fields is the example to the server."""
    fields = query_json(example)
    query = build(fields.pop("kind"), **fields)
    assert TypeAdapter(kind.query).validate_python(query) == example


def test_every_field_of_a_question_is_a_parameter_of_its_method() -> None:
    for name, question in QUESTIONS.items():
        parameters = inspect.signature(getattr(reticent.Dataset, name)).parameters
        for field in question.fields:
            default = parameters[field.name].default
            assert (list(default) if isinstance(default, tuple) else default) == field.default
