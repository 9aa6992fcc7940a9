# SPDX-License-Identifier: Apache-2.0
"""Any body whatever: a client's error or a plan, never a server's error."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reticent_server.api.problems import Problem
from support.installations.small import (
    Api,
    Installation,
    copied,
    opened,
    request_body,
    without_reader,
)

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
FIELDS = ["kind", "where", "column", "formula", "tuning", "mechanism", "confidence_level", "loss"]
QUERIES: list[dict[str, Any]] = [
    {"kind": "count", "where": "k > 3"},
    {"kind": "mean", "column": "x"},
    {"kind": "linear_regression", "formula": "y ~ x + C(g):k", "where": "b == 1"},
]


@st.composite
def nearly_right(draw: st.DrawFn) -> Any:
    """A good request with one part replaced by anything."""
    body = request_body(dict(draw(st.sampled_from(QUERIES))))
    part = draw(st.sampled_from([body, body["query"], body["privacy"]]))
    name = draw(st.sampled_from([*part, *FIELDS, "delta"]) | st.text(max_size=5))
    part[name] = draw(
        values | st.sampled_from([1e-300, 1e300, 10**400, "y ~ x", "C(g)", "epsilon"])
    )
    return body


@pytest.fixture(scope="module")
def api(
    installation_template: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Api]:
    directory = tmp_path_factory.mktemp("fuzzed") / "installation"
    with (
        copied(installation_template, directory) as installation,
        opened(installation.settings) as services,
    ):
        yield Api(without_reader(services), installation.keys["ana"])


@pytest.mark.slow
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(body=values | nearly_right())
def test_any_json(api: Api, body: Any) -> None:
    check(api, json.dumps(body).encode())


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(content=st.binary(max_size=200))
def test_any_bytes(api: Api, content: bytes) -> None:
    check(api, content)


def check(api: Api, content: bytes) -> None:
    reply = api.send(
        "POST", "/v1/plans", content=content, headers={"Content-Type": "application/json"}
    )
    assert reply.status_code in (200, 403, 404, 422), reply.text
    if reply.status_code != 200:
        Problem.model_validate(reply.json())
