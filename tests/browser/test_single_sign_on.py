# SPDX-License-Identifier: Apache-2.0
"""Signing in at an identity provider of another site, in a real browser: cookies, policy and the
way back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.installations.single_sign_on import desk_of
from support.processes.identity_provider import identity_provider

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

    from support.installations.console import History


@pytest.mark.audit
def test_the_way_to_the_provider_and_back(
    browser: Browser, history: History, tmp_path: Path
) -> None:
    with (
        identity_provider("localhost") as provider,
        desk_of(history, provider, tmp_path) as desk,
    ):
        context = browser.new_context(base_url=desk.url)
        page = context.new_page()
        page.set_default_timeout(30_000)
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.goto("/console/ledger")
        page.get_by_role("link", name="Sign in at your organisation").click()
        page.get_by_role("heading", name="Audit trail").wait_for()
        assert page.url == f"{desk.url}/console/ledger"
        names = {cookie["name"]: cookie["sameSite"] for cookie in context.cookies()}
        assert names == {"reticent": "Strict"}
        page.get_by_role("button", name="Sign out").click()
        page.get_by_role("heading", name="Sign in").wait_for()
        page.goto("/console/")
        assert page.get_by_role("heading", name="Sign in").is_visible()
        context.close()
        assert said == []
