# SPDX-License-Identifier: Apache-2.0
"""Who asks."""

from dataclasses import dataclass

from reticent_server.domain.roles import MAY, Act, Role
from reticent_server.errors import WrongRole


@dataclass(frozen=True, slots=True)
class Principal:
    """Somebody who has proved who they are: by a key, or by the identity provider's word for an
    identity that is linked with them. One of `key_id` and `identity_id` is there."""

    id: str
    name: str
    roles: frozenset[Role]
    key_id: str = ""
    identity_id: str = ""

    @property
    def proof(self) -> str:
        """The public id of the proof, for rate limits."""
        return self.key_id or self.identity_id

    def may(self, act: Act) -> bool:
        """Whether one of the roles is allowed to do it."""
        return not self.roles.isdisjoint(MAY[act])

    def require(self, act: Act) -> None:
        """Raises WrongRole for an act that none of the roles is allowed to do."""
        if not self.may(act):
            raise wrong_role(act)


def wrong_role(act: Act) -> WrongRole:
    """The refusal, which names who may."""
    allowed = " or ".join(sorted(role.replace("_", " ") for role in MAY[act]))
    needed = f"that needs the role {allowed}" if allowed else "that is done without a key"
    return WrongRole(f"This key may not {act}; {needed}.")
