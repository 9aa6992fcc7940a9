"""A request for a release, as it was sent, and the form in which the ledger keeps it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, get_args

from reticent_server.domain.query import Privacy, Query, query_json

_KINDS: Mapping[str, type[Query]] = {kind.kind: kind for kind in get_args(Query)}


@dataclass(frozen=True, slots=True)
class Ask:
    """One request for a release; `idempotency_key` None means a new charge.

    project: the name of a shared project that is to pay; None: as pipeline.authorising says."""

    dataset: str
    query: Query
    privacy: Privacy
    idempotency_key: str | None = None
    project: str | None = None

    def canonical(self) -> dict[str, Any]:
        """What must be the same for two requests to be the same."""
        privacy = {k: v for k, v in asdict(self.privacy).items() if v is not None}
        asked = {"dataset": self.dataset, "query": query_json(self.query), "privacy": privacy}
        return asked if self.project is None else asked | {"project": self.project}

    @classmethod
    def from_canonical(cls, stored: Mapping[str, Any]) -> "Ask":
        """The ask of a stored request."""
        fields = dict(stored["query"])
        query = _KINDS[fields.pop("kind")](**fields)
        privacy = Privacy(**stored["privacy"])
        return cls(stored["dataset"], query, privacy, project=stored.get("project"))
