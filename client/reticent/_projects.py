# SPDX-License-Identifier: Apache-2.0
"""Projects that analysts share, and requests for them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Project:
    """A project that the caller is a member of. live: neither closed nor over. ends_on: the last
    day (UTC).

    >>> [project.name for project in client.projects() if project.live]
    """

    name: str
    purpose: str
    members: tuple[str, ...]
    datasets: tuple[str, ...]
    ends_on: str | None
    live: bool

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Project":
        """From an entry of `GET /v1/projects`."""
        return cls(
            name=str(content["name"]),
            purpose=str(content["purpose"]),
            members=tuple(map(str, content["members"])),
            datasets=tuple(map(str, content["datasets"])),
            ends_on=_text(content["ends_on"]),
            live=bool(content["live"]),
        )


@dataclass(frozen=True, slots=True)
class ProjectRequest:
    """What was asked for, and what became of it: status "pending", "approved" or "refused", and
    why.

    budgets, plan: as they were sent.

    >>> [(asked.name, asked.status, asked.reason) for asked in client.requests()]
    """

    id: str
    name: str
    purpose: str
    status: str
    reason: str | None
    made_at: str
    budgets: tuple[Mapping[str, Any], ...]
    plan: tuple[Mapping[str, Any], ...]

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "ProjectRequest":
        """From an entry of `GET /v1/requests`, or the reply to a new request."""
        return cls(
            id=str(content["id"]),
            name=str(content["name"]),
            purpose=str(content["purpose"]),
            status=str(content["status"]),
            reason=_text(content["reason"]),
            made_at=str(content["made_at"]),
            budgets=tuple(map(dict, content["budgets"])),
            plan=tuple(map(dict, content["plan"])),
        )


def request_body(
    name: str,
    purpose: str,
    budgets: Mapping[str, tuple[float, float]],
    plan: Sequence[Mapping[str, Any]],
    members: Sequence[str],
    ends_on: str | None,
) -> dict[str, Any]:
    """The body of POST /v1/requests."""
    return {
        "name": name,
        "purpose": purpose,
        "members": list(members),
        "ends_on": ends_on,
        "budgets": [
            {"dataset": dataset, "epsilon": float(epsilon), "delta": float(delta)}
            for dataset, (epsilon, delta) in budgets.items()
        ],
        "plan": [dict(line) for line in plan],
    }


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
