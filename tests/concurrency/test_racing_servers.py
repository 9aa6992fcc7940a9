# SPDX-License-Identifier: Apache-2.0
"""Two server processes on one database, many clients: exactly what the cap allows is answered."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import httpx
import pytest

from support.installations.both_backends import installation
from support.installations.small import Installation, opened, request_body, serving

__all__ = ["installation"]

ANALYSTS = 4


def race(installation: Installation, *, clients: int, requests: int, allowed: int) -> None:
    """`clients` of four analysts send `requests` to two servers; the population's cap allows
    fewer.
    """
    with opened(installation.settings) as services:
        cap = {"epsilon": allowed / 100, "delta": 1e-3, "rule": "basic", "by": "t"}
        services.ledger.set_population_cap("people", **cap)
    keys = [installation.analyst(f"a{i}", epsilon=100, delta=1e-3) for i in range(ANALYSTS)]
    with ExitStack() as stack:
        urls = [stack.enter_context(serving(installation)).url for _ in range(2)]

        def ask(client: int) -> Counter[int]:
            headers = {"Authorization": f"Bearer {keys[client % ANALYSTS]}"}
            statuses: Counter[int] = Counter()
            with httpx.Client(base_url=urls[client % 2], headers=headers, timeout=120) as http:
                for _ in range(requests // clients):
                    reply = http.post("/v1/releases", json=request_body(epsilon=0.01, delta=1e-9))
                    statuses[reply.status_code] += 1
            return statuses

        with ThreadPoolExecutor(clients) as pool:
            statuses = sum(pool.map(ask, range(clients)), start=Counter[int]())
    assert statuses == {201: allowed, 403: requests - allowed}
    with opened(installation.settings) as services:
        balance = services.ledger.population_balance("people")
        assert balance is not None
        assert balance.remaining.primary == 0
        assert services.ledger.verify() == []


@pytest.mark.slow
@pytest.mark.sample(4)
def test_two_servers_race_for_the_last_unit(installation: Installation) -> None:
    race(installation, clients=8, requests=120, allowed=50)


@pytest.mark.audit
def test_two_servers_and_16_clients_race_2000_times(installation: Installation) -> None:
    race(installation, clients=16, requests=2000, allowed=777)
