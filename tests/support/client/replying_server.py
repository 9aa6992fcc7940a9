# SPDX-License-Identifier: Apache-2.0
"""A server in a function: replies as the real one sends them, and a record of what was asked."""

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
import numpy as np

import reticent

Reply = httpx.Response | Exception
CHARGED = {"epsilon": 1.0, "delta": 1e-6, "rho": 0.02436}
GUARANTEE = {
    "tier": "unconditional",
    "unit": "row",
    "epsilon": 1.0,
    "delta": 1e-6,
    "mechanism": "noisy Newton",
    "statement": "Replacing one row changes the probability of any reply by a factor of at most e.",
    "reference": "Avella-Medina, Bradshaw & Loh (2023)",
    "assumptions": [],
}
PROBABILITIES = [k / 20 for k in range(1, 20)]
DATASET = {
    "name": "houses",
    "version": 2,
    "n": 20_000,
    "description": "House sales",
    "unit": {"column": None, "max_rows": 1},
    "schema": {
        "columns": {
            "price": {"kind": "numeric", "lower": 0.0, "upper": 1e7, "levels": None, "missing": []},
            "grade": {
                "kind": "integer",
                "lower": 1,
                "upper": 13,
                "levels": None,
                "missing": ["NA"],
            },
            "zone": {"kind": "categorical", "lower": None, "upper": None}
            | {"levels": ["a", "b", "<c>"], "missing": []},
            "new": {"kind": "boolean", "lower": 0.0, "upper": 1.0, "levels": None, "missing": []},
        },
    },
    "profile": {
        "release_id": "rel_profile",
        "probabilities": PROBABILITIES,
        "columns": {
            "price": {
                "quantiles": [1e6 * p for p in PROBABILITIES],
                "counts": None,
                "missing": None,
            },
            "grade": {
                "quantiles": [1.0 + 10 * p for p in PROBABILITIES],
                "counts": None,
                "missing": 401.0,
            },
            "zone": {"quantiles": None, "counts": [12_000.0, 7_990.0, 12.0], "missing": None},
            "new": {"quantiles": None, "counts": [19_000.0, 1_001.0], "missing": None},
        },
    },
    "policy": {
        "tiers": ["unconditional"],
        "max_epsilon": None,
        "default_delta": 1e-6,
        "protocol_required": False,
    },
}
TERMS = ["Intercept", "x1", "x2", "g[b]", "x1:x2"]
COVARIANCE = [
    [0.0400, 0.0010, 0.0000, 0.0000, 0.0],
    [0.0010, 0.0025, 0.0005, 0.0000, 0.0],
    [0.0000, 0.0005, 0.0100, 0.0000, 0.0],
    [0.0000, 0.0000, 0.0000, 0.2500, 0.0],
    [0.0000, 0.0000, 0.0000, 0.0000, 9.0],
]
COEFFICIENTS = [10.0, 0.5, -0.3, 0.1, 1.0]


def regression_result() -> dict[str, Any]:
    bse = np.sqrt(np.diag(COVARIANCE))
    coefficients = np.array(COEFFICIENTS)
    half = 1.959963984540054 * bse
    half[2] *= 1.25  # as from a bootstrap
    intervals = np.c_[coefficients - half, coefficients + half].tolist()
    intervals[4] = [None, None]
    return {
        "terms": TERMS,
        "coefficients": COEFFICIENTS,
        "standard_errors": bse.tolist(),
        "covariance": COVARIANCE,
        "confidence_level": 0.95,
        "confidence_intervals": intervals,
        "p_values": [0.0, 5.7e-23, 0.0027, 0.84, None],
        "privacy_standard_errors": [0.12, 0.03, 0.06, 0.49, 2.9],
        "estimable": [True, True, True, True, False],
        "scale": 1.25,
        "tuning": 1.0,
        "estimand": "Huber-Mallows regression with whitened weights",
        "n": 20_000,
        "interval_factor": 1.0,
        "warnings": ["Not identifiable at this epsilon (collinear, constant or too rare): x1:x2."],
        "steps": 5,
    }


def release(kind: str = "linear_regression", **changes: Any) -> dict[str, Any]:
    """A stored release, as POST /v1/releases replies."""
    queries: dict[str, dict[str, Any]] = {
        "linear_regression": {"formula": "y ~ x1*x2 + g", "loss": "huber", "mechanism": "newton"},
        "count": {"where": 'zone == "a"'},
        "mean": {"column": "price"},
    }
    estimate: dict[str, Any] = {
        "value": 523.5,
        "standard_error": 5.0,
        "n": 20_000,
        "confidence_level": 0.95,
    }
    estimate["confidence_interval"] = [513.7, 533.3]
    results: dict[str, dict[str, Any]] = {
        "linear_regression": regression_result(),
        "count": estimate,
        "mean": estimate | {"privacy_standard_error": 3.0},
    }
    document = {
        "id": "rel_1",
        "dataset": "houses",
        "version": 2,
        "status": "reply",
        "query": {"kind": kind} | queries[kind],
        "charged": CHARGED,
        "guarantee": GUARANTEE,
        "result": results[kind],
        "created_at": "2026-01-02T03:04:05Z",
    }
    return copy.deepcopy(document | changes)


def problem(status: int, code: str, **more: Any) -> httpx.Response:
    document = {
        "type": f"urn:reticent:problem:{code}",
        "title": "A title",
        "status": status,
        "detail": f"A sentence about {code}.",
        "code": code,
    }
    headers = {"Content-Type": "application/problem+json"}
    return httpx.Response(status, json=document | more, headers=headers)


PLAN = {
    "dataset": "houses",
    "version": 2,
    "query": {"kind": "linear_regression", "formula": "y ~ x1", "where": None},
    "cost": CHARGED,
    "guarantee": GUARANTEE,
    "deadline_ms": 250,
    "forecast": {
        "steps": 5,
        "notes": ["No profile covers this model's columns.", "Another note."],
        "shares": {"gradients": 0.78, "records_in_use": 0.0},
        "privacy_standard_error": 0.00125,
        "nothing": [],
    },
}


@dataclass
class Server:
    """replies: to be given one after the other before `answer` takes over. echoes: whether a reply
    is about what was asked.
    """

    answer: Callable[[httpx.Request], httpx.Response] = lambda _: httpx.Response(200, json={})
    replies: list[Reply] = field(default_factory=list)
    requests: list[httpx.Request] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)
    echoes: bool = True

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        reply = self.replies.pop(0) if self.replies else self.answer(request)
        if isinstance(reply, Exception):
            raise reply
        return self._about(request, reply)

    def _about(self, request: httpx.Request, reply: httpx.Response) -> httpx.Response:
        """The reply with the data set and the query that were asked, where it is of that kind."""
        asked = json.loads(request.content) if request.method == "POST" else {}
        said = reply.json() if self.echoes and "query" in asked and reply.is_success else {}
        if not isinstance(said, dict) or "query" not in said:
            return reply
        if request.url.path.endswith("/plans"):
            return httpx.Response(reply.status_code, json=said | {"query": asked["query"]})
        if said["query"]["kind"] != asked["query"]["kind"]:
            return reply
        said |= {"dataset": asked["dataset"], "query": said["query"] | asked["query"]}
        return httpx.Response(reply.status_code, json=said)

    def always(self, status: int, content: Any) -> None:
        self.answer = lambda _: httpx.Response(status, json=content)

    def body(self) -> Any:
        return json.loads(self.requests[-1].content)

    def client(self, **options: Any) -> reticent.Client:
        transport = httpx.MockTransport(self)
        settings: dict[str, Any] = {
            "key": "rk_1_secret",
            "transport": transport,
            "sleep": self.pauses.append,
        }
        return reticent.Client("http://server.test/base", **settings | options)

    def dataset(self) -> reticent.Dataset:
        self.always(200, DATASET)
        return self.client().dataset("houses")
