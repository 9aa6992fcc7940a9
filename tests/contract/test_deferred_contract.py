# SPDX-License-Identifier: Apache-2.0
"""The real client waits for, shows and cancels releases of the real server, over a loopback
socket.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import reticent
from reticent_server.app import create_app
from reticent_server.pipeline.services import Services
from support.installations.in_thread import in_thread
from support.installations.small import Installation


@pytest.fixture
def url(services: Services) -> Iterator[str]:
    """The address of the application on a time grid of 400 ms, so that a second release waits."""
    gridded = services.settings.model_copy(update={"reply_grid_ms": 400})
    with in_thread(create_app(replace(services, settings=gridded))) as served:
        yield served.url


def cancelled_behind_another(client: reticent.Client, people: reticent.Dataset) -> Any:
    """A release, and what was spent before the one behind it, which is cancelled while it waits.

    Where this machine stands still for the time of the first, the second has begun: then two others
    are tried.
    """
    for _ in range(40):
        first = people.submit("count", epsilon=0.5)
        spent = client.budget()["people"].spent
        second = people.submit("count", epsilon=0.5)
        try:
            cancelled = client.cancel(second.id)
        except reticent.Conflict:
            client.wait(second.id)
            continue
        assert second.release["progress"]["state"] == "queued"
        assert cancelled.status == "cancelled"
        return first, spent
    raise AssertionError("no release could be cancelled in time")


@pytest.mark.slow
def test_progress_and_cancelling(
    url: str, installation: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    with reticent.Client(url, key=installation.keys["ana"], retries=0, progress=True) as client:
        people = client.dataset("people")
        first, spent = cancelled_behind_another(client, people)
        assert client.budget()["people"].spent == spent
        assert client.wait(first.id).status == "reply"
        with pytest.raises(reticent.Conflict):
            client.cancel(first.id)
        assert abs(people.count(epsilon=5.0).value - 400) < 100
        assert {r.status for r in client.releases()} == {"reply", "cancelled"}
    assert "s left by plan" in capsys.readouterr().err
