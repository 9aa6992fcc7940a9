# SPDX-License-Identifier: Apache-2.0
"""How surely the provider must know who somebody is: `acr` and `amr` of OpenID Connect Core 1.0,
section 2."""

from collections.abc import Collection
from dataclasses import dataclass

from reticent_server.access.oidc.tokens import Claims
from reticent_server.domain.principal import Principal
from reticent_server.domain.roles import STAFF


@dataclass(frozen=True, slots=True)
class Assurance:
    """acr: classes, one of which the token must name. amr: methods, one of which must have been
    used. Empty: nothing is asked. of_everybody: of analysts, too."""

    acr: Collection[str]
    amr: Collection[str]
    of_everybody: bool

    def suffices(self, claims: Claims, holder: Principal) -> bool:
        """Whether somebody with these claims may be that holder."""
        if not self.of_everybody and holder.roles.isdisjoint(STAFF):
            return True
        used = claims.get("amr")
        methods = {m for m in used if isinstance(m, str)} if isinstance(used, list) else set()
        has_class = not self.acr or claims.get("acr") in self.acr
        return has_class and (not self.amr or not methods.isdisjoint(self.amr))
