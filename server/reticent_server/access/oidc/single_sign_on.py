# SPDX-License-Identifier: Apache-2.0
"""Single sign-on: the provider's word, and the holder whom it is linked with."""

from dataclasses import dataclass

from reticent_server.access.identities import Identities
from reticent_server.access.oidc.assurance import Assurance
from reticent_server.access.oidc.flow import Flow
from reticent_server.access.oidc.provider import Provider
from reticent_server.access.oidc.tokens import Claims, Tokens
from reticent_server.domain.principal import Principal
from reticent_server.errors import WeakSignIn

_WEAK = (
    "The identity provider does not say that you signed in as this account asks for (a second "
    "factor, for example). Sign in there again as it asks."
)


@dataclass(frozen=True, slots=True)
class SingleSignOn:
    """flow: for the console, analysts_flow: for the workbench; None: keys or bearer tokens only.
    audience: whom bearer tokens must be for."""

    provider: Provider
    tokens: Tokens
    identities: Identities
    assurance: Assurance
    audience: str
    flow: Flow | None
    analysts_flow: Flow | None

    def bearer(self, token: str) -> Principal | None:
        """The holder of a bearer token; None for one that is not valid, or of nobody here.

        Raises WeakSignIn, Unavailable.
        """
        claims = self.tokens.bearer(token, self.audience)
        return None if claims is None else self.holder(claims)

    def holder(self, claims: Claims) -> Principal | None:
        """Who is linked with verified claims; None: nobody. Raises WeakSignIn, Unavailable."""
        principal = self.identities.holder_of(self.provider.issuer, claims)
        if principal is not None and not self.assurance.suffices(claims, principal):
            raise WeakSignIn(_WEAK)
        return principal

    def close(self) -> None:
        """Ends the connections to the identity provider."""
        self.provider.close()
