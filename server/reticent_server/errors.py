# SPDX-License-Identifier: Apache-2.0
"""Every error that a user can meet.

    ReticentError
    ├── Unauthorized         401 unauthorized
    ├── WeakSignIn           401 weak_sign_in
    ├── NotFound             404 not_found          absent and forbidden alike
    ├── BudgetExhausted      403 budget_exhausted
    ├── PolicyRefused        403 policy
    ├── WrongRole            403 wrong_role
    ├── IdempotencyConflict  409 idempotency_conflict
    ├── Conflict             409 conflict
    ├── SecondPerson         409 second_person
    ├── InvalidRequest       422 invalid_request
    │   ├── InvalidQuery     422 invalid_query
    │   │   └── UnknownColumn    422 invalid_query      until a plan says which field names it
    │   ├── InvalidFormula   422 invalid_formula
    │   └── InvalidPrivacy   422 invalid_privacy
    ├── RateLimited          429 rate_limited
    ├── CallerLeft           499 caller_left        whom nothing reaches any more
    ├── Unavailable          503 unavailable
    │   ├── QueueFull        503 queue_full
    │   ├── SourceAway       503 unavailable        of one data set; its cause is for the curator
    │   └── Damaged          503 unavailable
    └── CuratorError             for the command line only; its text may quote a cell
        └── LibraryMissing       a file that this installation cannot read, and another can

The text of an error that can reach an analyst is made of constant words and of public facts (column
names, declared bounds, limits): never of the caller's input as sent, and never of a private cell.
"""

from typing import ClassVar


class ReticentError(Exception):
    """Base of all; `code` is stable, `status` is the HTTP status, `detail` says what to change."""

    code: ClassVar[str] = "error"
    status: ClassVar[int] = 500
    title: ClassVar[str] = "Error"

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class Unauthorized(ReticentError):
    """No key, no valid one, or a revoked one."""

    code, status, title = "unauthorized", 401, "No valid key"


class WeakSignIn(ReticentError):
    """The identity provider's token is valid, and says too little about how somebody signed in
    there."""

    code, status, title = "weak_sign_in", 401, "Stronger sign-in needed"


NO_DATASET = "No such data set, or no grant for it."


class NotFound(ReticentError):
    """There is no such thing, or the caller may not know of it: both have the same reply."""

    code, status, title = "not_found", 404, "Not found"


class BudgetExhausted(ReticentError):
    """Nothing was charged. `remaining` holds public decimal strings of what is left."""

    code, status, title = "budget_exhausted", 403, "Budget exhausted"

    def __init__(self, detail: str, remaining: dict[str, float] | None = None) -> None:
        super().__init__(detail)
        self.remaining = remaining or {}


class PolicyRefused(ReticentError):
    """The data set's policy does not allow the tier or the epsilon asked for. Nothing was
    charged."""

    code, status, title = "policy", 403, "Not allowed by the data set's policy"


class WrongRole(ReticentError):
    """The key is valid, and its holder has another role than the call is for."""

    code, status, title = "wrong_role", 403, "Not for this key's role"


class IdempotencyConflict(ReticentError):
    """The same idempotency key came with another request before. Nothing was charged."""

    code, status, title = (
        "idempotency_conflict",
        409,
        "Idempotency key was used for another request",
    )


class Conflict(ReticentError):
    """The state of the server does not allow the act, such as a name that is in use."""

    code, status, title = "conflict", 409, "Conflict"


class SecondPerson(ReticentError):
    """Nothing was done: the act is proposed now, as `proposal_id`, and waits for somebody else."""

    code, status, title = "second_person", 409, "A second person must approve"

    def __init__(self, proposal_id: str) -> None:
        super().__init__(
            f"Proposed as {proposal_id}: the policy asks for a second person. When somebody else "
            "has approved that, send exactly the same again."
        )
        self.proposal_id = proposal_id


class InvalidRequest(ReticentError):
    """The request cannot be understood, or asks for what there is not. Nothing was charged."""

    code, status, title = "invalid_request", 422, "Invalid request"


class InvalidQuery(InvalidRequest):
    """A field of the question has a value that cannot be answered."""

    code, title = "invalid_query", "Invalid query"


class UnknownColumn(InvalidQuery):
    """A field of the question names a column that the data set does not have."""

    def __init__(self, column: str, field: str = "The question") -> None:
        super().__init__(f"{field} names a column that the data set does not have.")
        self.column = column


class InvalidFormula(InvalidRequest):
    """A formula or a condition cannot be read, or names what the data set does not have."""

    code, title = "invalid_formula", "Invalid formula"


class InvalidPrivacy(InvalidRequest):
    """Epsilon, delta or what stands for them is out of range, or buys too little for the
    question."""

    code, title = "invalid_privacy", "Invalid privacy parameters"


class RateLimited(ReticentError):
    """retry_after: whole seconds after which the key may ask again."""

    code, status, title = "rate_limited", 429, "Too many requests"

    def __init__(self, detail: str, retry_after: int = 1) -> None:
        super().__init__(detail)
        self.retry_after = retry_after


class CallerLeft(ReticentError):
    """Nothing was charged: work ends for which nobody waits. Logs and metrics see the status, which
    is nginx' own."""

    code, status, title = "caller_left", 499, "The caller has hung up"


class Unavailable(ReticentError):
    """Something that the server needs does not answer. Nothing was released; it may be tried
    again."""

    code, status, title = "unavailable", 503, "Unavailable"


class QueueFull(Unavailable):
    """Nothing was charged. retry_after: whole planned seconds until there is room."""

    code, title = "queue_full", "Queue full"

    def __init__(self, limit_seconds: int, retry_after: int) -> None:
        super().__init__(
            "No room is left in the queue: what is accepted is planned to be answered within "
            f"{limit_seconds} seconds. Send the request again later."
        )
        self.retry_after = retry_after


class SourceAway(Unavailable):
    """The rows of a data set cannot be read now. cause: a word for the curator's log, made of
    nothing that was read."""

    def __init__(self, cause: str) -> None:
        super().__init__("The data set cannot be read at the moment; nothing was charged.")
        self.cause = cause


class Damaged(Unavailable):
    """The database's files are not as the database wrote them; what to do is for whoever installed
    the server."""

    def __init__(self) -> None:
        super().__init__(
            "The server's database is damaged. Its curator: stop the server, keep a copy of the "
            'database as it is, restore the last backup as "A damaged database" in the operations '
            "guide says, and run `reticent ledger verify` with the last head that was kept "
            "elsewhere."
        )


class CuratorError(ReticentError):
    """An error of a curator's command; answers the curator only, so it may name row and column."""

    code, status, title = "curator", 500, "Command failed"


class LibraryMissing(CuratorError):
    """A file of a format whose library is not installed: it can be read once it is."""

    code = "library_missing"
