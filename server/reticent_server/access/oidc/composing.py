# SPDX-License-Identifier: Apache-2.0
"""Single sign-on from the settings."""

from urllib.parse import urlsplit

from reticent_server.access.identities import Identities
from reticent_server.access.oidc.assurance import Assurance
from reticent_server.access.oidc.fetching import Fetcher
from reticent_server.access.oidc.flow import ClientRegistration, Flow
from reticent_server.access.oidc.provider import Provider
from reticent_server.access.oidc.single_sign_on import SingleSignOn
from reticent_server.access.oidc.tokens import Tokens
from reticent_server.domain.clock import Clock
from reticent_server.errors import CuratorError
from reticent_server.settings import Settings


def single_sign_on(settings: Settings, identities: Identities, clock: Clock) -> SingleSignOn:
    """As the settings say; nothing is fetched yet. Raises CuratorError for settings that cannot
    be."""
    audience = settings.oidc_audience or settings.oidc_client_id
    if not audience:
        raise CuratorError("RETICENT_OIDC_ISSUER needs RETICENT_OIDC_CLIENT_ID, or an audience.")
    provider = Provider(settings.oidc_issuer, Fetcher(), clock)
    tokens = Tokens(provider, clock, settings.oidc_algorithms.split())
    is_of_everybody = settings.oidc_assurance_of == "everybody"
    return SingleSignOn(
        provider=provider,
        tokens=tokens,
        identities=identities,
        assurance=Assurance(settings.oidc_acr.split(), settings.oidc_amr.split(), is_of_everybody),
        audience=audience,
        flow=_flow(settings, settings.oidc_redirect_url, provider, tokens),
        analysts_flow=_flow(settings, settings.oidc_workbench_redirect_url, provider, tokens),
    )


def _flow(settings: Settings, url: str, provider: Provider, tokens: Tokens) -> Flow | None:
    if not url:
        return None
    if not settings.oidc_client_id:
        raise CuratorError("An OpenID Connect redirect URL needs RETICENT_OIDC_CLIENT_ID.")
    if urlsplit(url).path.rsplit("/", 3)[0] != settings.root_path:
        raise CuratorError(
            "An OpenID Connect redirect URL has RETICENT_ROOT_PATH "
            f"({settings.root_path or 'empty'}) between its host and /console or /workbench."
        )
    own = ClientRegistration(settings.oidc_client_id, url, _secret(settings))
    return Flow(provider, tokens, own, settings.oidc_acr)


def _secret(settings: Settings) -> str | None:
    """The client's secret. Raises CuratorError where it cannot be read."""
    path = settings.oidc_client_secret_file
    if path is None:
        return None
    try:
        secret = path.read_text("ascii").strip()
    except (OSError, ValueError):
        secret = ""
    if not secret:
        raise CuratorError("RETICENT_OIDC_CLIENT_SECRET_FILE cannot be read, or is empty.")
    return secret
