# SPDX-License-Identifier: Apache-2.0
"""Every error that the client raises.

    ReticentError
    ├── TransportError            no reply came: network, time-out, certificate, address
    ├── ServerUnavailable         502, 503, 504, after the retries
    ├── ServerError               another 5xx
    ├── UnexpectedReply           a reply that is not Reticent's
    ├── Unauthorized              401
    ├── NotFound                  404   absent, or not granted to this key
    ├── BudgetExhausted           403   nothing was charged; `remaining` says what is left
    ├── PolicyRefused             403   not allowed on this data set
    ├── Conflict                  409
    │   └── IdempotencyConflict         the key was used for another request
    ├── InvalidRequest            422   and other 4xx
    │   ├── InvalidQuery
    │   ├── InvalidFormula
    │   └── InvalidPrivacy
    ├── NotPrivate                another package's call that needs single records, or has no
    │                             private mechanism
    ├── RateLimited               429, after the retries
    ├── NotSpent                  a plan was made, and nothing was charged; `plan` has it
    │   ├── ConfirmationNeeded          nobody has agreed to its cost
    │   └── UselessForecast             dry_run="warn": the intervals would say nothing
    ├── InvalidHypothesis         a hypothesis that cannot be read, or repeats itself
    ├── NotEstimable              a question about a coefficient that is not identifiable
    └── MissingDependency         an optional package is not installed

`str(error)` is a sentence that says what to do.
"""

import json
from collections.abc import Mapping
from typing import Any


class ReticentError(Exception):
    """Base of all.

    status: the HTTP status, or None. code: the server's stable code, or None. idempotency_key: of a
    release that was asked for, where it is not known whether it was charged: the same call with
    this key gives the same release, and is charged at most once.
    """

    def __init__(
        self,
        detail: str,
        *,
        status: int | None = None,
        code: str | None = None,
        idempotency_key: str | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.status = status
        self.code = code
        self.idempotency_key = idempotency_key


class TransportError(ReticentError):
    """No reply came."""


class ServerUnavailable(ReticentError):
    """The server, or a proxy before it, cannot answer now."""


class ServerError(ReticentError):
    """The server failed."""


class UnexpectedReply(ReticentError):
    """What answered does not speak Reticent's protocol."""


class Unauthorized(ReticentError):
    """The key is not valid."""


class NotFound(ReticentError):
    """Absent, or not granted to this key."""


class BudgetExhausted(ReticentError):
    """The request costs more than is left; nothing was charged.

    remaining: what is left, by name: epsilon and delta under the rule basic; rho and rho_delta
    under zcdp and gdp, and the epsilon that they amount to, as `client.budget()` shows them.

    >>> try:
    ...     ds.count(epsilon=90.0)
    ... except reticent.BudgetExhausted as refusal:
    ...     refusal.remaining
    """

    remaining: Mapping[str, float]

    def __init__(self, detail: str, **facts: Any) -> None:
        remaining = facts.pop("remaining", None)
        self.remaining = dict(remaining) if isinstance(remaining, Mapping) else {}
        said = [name for name in self.remaining if name != "rho" or "epsilon" not in self.remaining]
        left = ", ".join(_amount(name, self.remaining[name]) for name in said)
        super().__init__(f"{detail} Left: {left}." if left else detail, **facts)


_SYMBOLS = {"epsilon": "ε", "delta": "δ", "rho": "ρ", "rho_delta": "δ"}


def _amount(name: str, amount: Any) -> str:
    shown = f"{amount:.4g}" if isinstance(amount, float) else str(amount)
    return f"{_SYMBOLS.get(name, name)} = {shown}"


class PolicyRefused(ReticentError):
    """The data set's policy does not allow this."""


class Conflict(ReticentError):
    """The request does not fit what is stored."""


class IdempotencyConflict(Conflict):
    """The idempotency key was used for another request."""


class InvalidRequest(ReticentError):
    """The request cannot be read; nothing was charged."""


class InvalidQuery(InvalidRequest):
    """The query cannot be answered on this data set."""


class InvalidFormula(InvalidRequest):
    """The formula or the where condition cannot be read."""


class InvalidPrivacy(InvalidRequest):
    """epsilon or delta is not usable."""


class RateLimited(ReticentError):
    """Too many requests with this key."""


class NotSpent(ReticentError):
    """A plan was made, and nothing was charged. plan: what it would cost and bring."""

    def __init__(self, detail: str, *, plan: Any) -> None:
        super().__init__(detail)
        self.plan = plan


class ConfirmationNeeded(NotSpent):
    """Nobody has agreed to what the answer costs: give confirm=True, or epsilon as the most to
    spend.

    >>> try:
    ...     ds.mean("price", ci_ratio=1.25)
    ... except reticent.ConfirmationNeeded as asked:
    ...     asked.plan.cost.epsilon
    """


class UselessForecast(NotSpent):
    """dry_run="warn": the intervals would be too wide to say anything."""


class InvalidHypothesis(ReticentError, ValueError):
    """The hypothesis cannot be read or tested."""


class NotEstimable(ReticentError, ValueError):
    """Not identifiable at this ε: the data's information about what was asked for is below the
    noise.
    """


class NotPrivate(ReticentError, AttributeError):
    """Something of another package (reticent.statsmodels and its like) that needs single records,
    or that no mechanism answers; the sentence says what to write. An AttributeError too, so that
    `hasattr` tells what there is.
    """


class MissingDependency(ReticentError, ImportError):
    """An optional package is not installed."""


_BY_CODE: dict[str, type[ReticentError]] = {
    "unauthorized": Unauthorized,
    "not_found": NotFound,
    "budget_exhausted": BudgetExhausted,
    "policy": PolicyRefused,
    "conflict": Conflict,
    "idempotency_conflict": IdempotencyConflict,
    "invalid_request": InvalidRequest,
    "invalid_query": InvalidQuery,
    "invalid_formula": InvalidFormula,
    "invalid_privacy": InvalidPrivacy,
    "rate_limited": RateLimited,
    "unavailable": ServerUnavailable,
}
_BY_STATUS: dict[int, type[ReticentError]] = {
    400: InvalidRequest,
    401: Unauthorized,
    403: PolicyRefused,
    404: NotFound,
    405: InvalidRequest,
    409: Conflict,
    413: InvalidRequest,
    415: InvalidRequest,
    422: InvalidRequest,
    429: RateLimited,
    502: ServerUnavailable,
    503: ServerUnavailable,
    504: ServerUnavailable,
}
_LONGEST_DETAIL = 2_000
_NOT_OURS = "Is this the address of a Reticent server, without a path?"
_ADVICE: dict[type[ReticentError], str] = {
    Unauthorized: "Check the key that reticent.Client was given, or ask the curator for a new one.",
    NotFound: "client.datasets() and client.releases() list what this key may see.",
    BudgetExhausted: (
        "client.budget() shows your account, ds.plan(...) what a question costs there; both are "
        "free."
    ),
    PolicyRefused: "ds.policy says what is allowed.",
}
"""What to do, where the server's sentence cannot know how it was asked."""


def from_reply(status: int, body: bytes, idempotency_key: str | None = None) -> ReticentError:
    """The exception of a reply that is no success, by its problem's code, else by its status."""
    problem = _problem(body)
    code = problem.get("code")
    code = code if isinstance(code, str) else None
    kind = _BY_CODE.get(code or "", _by_status(status))
    detail = problem.get("detail") or problem.get("title")
    text = str(detail)[:_LONGEST_DETAIL] if detail else f"The server replied {status}."
    elsewhere = not detail and kind in {NotFound, UnexpectedReply}
    advice = _NOT_OURS if elsewhere else _ADVICE.get(kind)
    text = f"{text} {advice}" if advice else text
    charged_perhaps = idempotency_key if status >= 500 else None
    facts: dict[str, Any] = {"status": status, "code": code, "idempotency_key": charged_perhaps}
    if kind is BudgetExhausted:
        facts["remaining"] = problem.get("remaining")
    return kind(text, **facts)


def _by_status(status: int) -> type[ReticentError]:
    fallback = ServerError if status >= 500 else UnexpectedReply
    return _BY_STATUS.get(status, fallback)


def _problem(body: bytes) -> dict[str, Any]:
    try:
        problem = json.loads(body)
    except ValueError:
        return {}
    return problem if isinstance(problem, dict) else {}
