"""Noise comes from a seed here: nothing in this folder depends on chance."""

from __future__ import annotations

import pytest

from support.attacks.seeded_noise import seed_noise


@pytest.fixture(autouse=True)
def _seeded_noise(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    seed_noise(monkeypatch, request.node.nodeid)
