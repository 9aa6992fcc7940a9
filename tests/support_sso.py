"""An installation whose server knows an identity provider that runs beside it."""

from pathlib import Path
from typing import Any

from reticent_server.access.identity_rows import Identity
from reticent_server.pipeline.services import Services
from reticent_server.settings import Settings
from support_provider import CLIENT, SECRET, Provider


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
