# SPDX-License-Identifier: Apache-2.0
"""A request for a release, as it was sent, and the form in which the ledger keeps it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from reticent_server.domain.query import Privacy, Query, query_json
from reticent_server.kinds import registry


@dataclass(frozen=True, slots=True)
class Ask:
    """One request for a release; `idempotency_key` None means a new charge.

    project: the name of a shared project that is to pay; None: as pipeline.authorising says.
    protocol: the digest of the protocol that the request says it is part of (pipeline.protocols).
    """

    dataset: str
    query: Query
    privacy: Privacy
    idempotency_key: str | None = None
    project: str | None = None
    protocol: str | None = None

    def canonical(self) -> dict[str, Any]:
        """What must be the same for two requests to be the same."""
        privacy = {k: v for k, v in asdict(self.privacy).items() if v is not None}
        asked = {"dataset": self.dataset, "query": query_json(self.query), "privacy": privacy}
        named = {"project": self.project, "protocol": self.protocol}
        return asked | {name: value for name, value in named.items() if value is not None}

    @classmethod
    def from_canonical(cls, stored: Mapping[str, Any]) -> "Ask":
        """The ask of a stored request."""
        query = registry.stored_query(stored["query"])
        privacy = Privacy(**stored["privacy"])
        return cls(
            stored["dataset"],
            query,
            privacy,
            project=stored.get("project"),
            protocol=stored.get("protocol"),
        )
