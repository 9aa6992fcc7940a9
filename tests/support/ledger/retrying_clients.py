"""Clients that ask until they have an answer, and what must then be true of the ledger."""

from dataclasses import dataclass, field
from threading import Event
from time import sleep

import httpx

from support.installations.small import Installation, opened, request_body

COST = 10_000_000  # ε = 0.01 in units
CLIENTS = 4
PAUSE, ENDINGS = 0.02, 1000


@dataclass
class Client:
    """Asks with one key until it has the whole answer, then with the next; at the end again.

    It waits for its answers, or (`Prefer: respond-async` among its headers) comes back for them.
    """

    name: str
    headers: dict[str, str]
    bodies: dict[str, set[bytes]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def ask(self, http: httpx.Client, key: str) -> bool:
        """Whether the whole release came."""
        body, headers = request_body(epsilon=0.01), self.headers | {"Idempotency-Key": key}
        try:
            reply = http.post("/v1/releases", json=body, headers=headers)
        except httpx.TransportError:
            return False
        if reply.status_code == 201:
            self.bodies.setdefault(key, set()).add(reply.content)
            return True
        if reply.status_code == 202:
            sleep(PAUSE)
        elif reply.status_code != 503:
            self.problems.append(reply.text)
        return False

    def run(self, url: str, ended: Event) -> None:
        number = 0
        with httpx.Client(base_url=url, timeout=20.0) as http:
            while not ended.is_set():
                number += self.ask(http, f"{self.name}-{number}")
            for _ in range(ENDINGS):  # what it had begun to ask for is answered, too
                if self.ask(http, f"{self.name}-{number}"):
                    break
            for key in list(self.bodies):
                assert self.ask(http, key), f"{self.name} has no answer any more for {key}"


def clients(installation: Installation, *, later: int = 0) -> list[Client]:
    """Four that wait, and `later` that come back."""
    headers = {"Authorization": f"Bearer {installation.keys['ana']}"}
    waiting = [Client(str(i), headers) for i in range(CLIENTS)]
    back = headers | {"Prefer": "respond-async"}
    return [*waiting, *(Client(f"later-{i}", back) for i in range(later))]


def audit(installation: Installation, clients: list[Client]) -> None:
    """Every answer is one release with its debit, and the same bytes whenever it was asked for."""
    answered = {key: found for c in clients for key, found in c.bodies.items()}
    assert answered
    assert {len(found) for found in answered.values()} == {1}
    assert [c.problems for c in clients] == [[] for _ in clients]
    with opened(installation.settings) as services:
        assert services.ledger.verify() == []
        ana = services.access.authenticate(installation.keys["ana"])
        assert ana is not None
        stored = services.ledger.releases(ana.id, limit=100_000)
        assert {next(iter(found)) for found in answered.values()} <= set(stored)
        spent = {b.account: b.spent for b in services.ledger.all_balances()}
        assert spent["population:people"].primary == COST * len(stored)
        debits = [e for e in services.ledger.entries(limit=10**6) if e.draft.action == "debit"]
        assert len(debits) == 2 * len(stored)
