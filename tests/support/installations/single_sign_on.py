# SPDX-License-Identifier: Apache-2.0
"""An installation whose server knows an identity provider that runs beside it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from reticent_server.access.identity_rows import Identity
from reticent_server.pipeline.services import Services
from reticent_server.settings import Settings
from support.installations.console import Desk, History, console
from support.processes.identity_provider import CLIENT, SECRET, Provider

CALLBACK = "/console/oidc/callback"
ANALYSTS_CALLBACK = "/workbench/oidc/callback"
STRONG = {"acr": "gold", "amr": ["otp"]}


def with_provider(settings: Settings, provider: Provider, folder: Path, **changes: Any) -> Settings:
    """The settings of a server that is registered at the provider."""
    secret = folder / "client-secret"
    secret.write_text(SECRET + "\n")
    given = {
        "oidc_issuer": provider.issuer,
        "oidc_client_id": CLIENT,
        "oidc_client_secret_file": secret,
        "oidc_redirect_url": provider.redirect,
    }
    return Settings(**{**settings.model_dump(), **given, **changes})


def link(services: Services, provider: Provider, name: str, subject: str) -> None:
    services.identities.link(name, Identity(provider.issuer, "sub", subject), by="t")


@contextmanager
def desk_of(
    history: History, provider: Provider, folder: Path, callback: str = CALLBACK
) -> Iterator[Desk]:
    """A server that is registered at the provider, which asks for a second factor and knows of its
    pages the one that is `callback`; carol and ana are linked, and carol signs in next. Tokens are
    of the server's time.
    """
    copied = history.copied(folder / "desk")
    provider.claims |= STRONG

    def settings_of(port: int) -> Settings:
        place = f"http://127.0.0.1:{port}"
        provider.redirect = place + callback
        asked = {
            "oidc_acr": "gold",
            "oidc_amr": "otp",
            "oidc_redirect_url": place + CALLBACK,
            "oidc_workbench_redirect_url": place + ANALYSTS_CALLBACK,
        }
        return with_provider(copied.installation.settings, provider, folder, **asked)

    with console(copied, settings_of) as desk:
        provider.now = lambda: desk.clock.now().timestamp()
        link(desk.services, provider, "carol", "s-carol")
        yield desk
