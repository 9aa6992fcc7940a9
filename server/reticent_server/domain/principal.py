"""Who asks."""

from dataclasses import dataclass

from reticent_server.domain.roles import MAY, Act, Role
from reticent_server.errors import WrongRole


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated holder of a key."""

    id: str
    name: str
    roles: frozenset[Role]
    key_id: str = ""

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
