# SPDX-License-Identifier: Apache-2.0
"""The SQL of identities; every function runs in the caller's transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from secrets import token_hex
from string import ascii_lowercase, ascii_uppercase
from typing import Any, Literal

from sqlalchemy import Connection, RowMapping, bindparam, insert, select, update

from reticent_server.access.tables import identities, principals
from reticent_server.chain.acts import Change
from reticent_server.chain.repository import last_about
from reticent_server.errors import InvalidRequest

LONGEST_VALUE = 255
"""Characters of a subject (OpenID Connect Core 1.0, section 2), and as the column has."""

# Built once: every request with a token asks these.
_LIVE = (
    select(
        *(column.label(f"identity.{column.name}") for column in identities.columns),
        *(column.label(f"holder.{column.name}") for column in principals.columns),
        last_about(identities, identities.c.id).label("identity_entry"),
        last_about(principals, principals.c.id).label("holder_entry"),
    )
    .join(principals, identities.c.principal_id == principals.c.id)
    .where(identities.c.ended_at.is_(None), principals.c.revoked_at.is_(None))
)
_BY_ID = _LIVE.where(identities.c.id == bindparam("identity_id"))
_BY_CLAIM = _LIVE.where(
    identities.c.issuer == bindparam("of_issuer"),
    identities.c.claim == bindparam("of_claim"),
    identities.c.value == bindparam("of_value"),
)


@dataclass(frozen=True, slots=True)
class Identity:
    """What the provider says of somebody. claim "email": an address that it has verified."""

    issuer: str
    claim: Literal["sub", "email"]
    value: str

    def __post_init__(self) -> None:
        if not (self.issuer and 0 < len(self.value) <= LONGEST_VALUE and self.value.isprintable()):
            raise InvalidRequest("A subject or an address has 1 to 255 printable characters.")


@dataclass(frozen=True, slots=True)
class LiveIdentity:
    """An identity and its holder, as they are stored, with the numbers of the last entries about
    them."""

    identity: Mapping[str, Any]
    holder: Mapping[str, Any]
    identity_entry: int | None
    holder_entry: int | None


def with_id(connection: Connection, identity_id: str) -> LiveIdentity | None:
    """An identity that is linked with a holder who is not revoked."""
    return _live(connection.execute(_BY_ID, {"identity_id": identity_id}).mappings().one_or_none())


def with_claim(connection: Connection, issuer: str, claim: str, value: str) -> LiveIdentity | None:
    """As `with_id`, by what the provider says."""
    given = {"of_issuer": issuer, "of_claim": claim, "of_value": value}
    return _live(connection.execute(_BY_CLAIM, given).mappings().one_or_none())


def _live(row: RowMapping | None) -> LiveIdentity | None:
    if row is None:
        return None
    identity = {column.name: row[f"identity.{column.name}"] for column in identities.columns}
    holder = {column.name: row[f"holder.{column.name}"] for column in principals.columns}
    return LiveIdentity(identity, holder, row["identity_entry"], row["holder_entry"])


def insert_identity(connection: Connection, values: Mapping[str, Any]) -> None:
    """Adds a row of `identities`. values: by column."""
    connection.execute(insert(identities).values(values))


def end_identity(connection: Connection, identity_id: str, at: str) -> None:
    """Marks an identity as no longer valid. at: the time, as the ledger writes it."""
    query = update(identities).where(identities.c.id == identity_id)
    connection.execute(query.values(ended_at=at))


def identities_of(connection: Connection, principal_id: str) -> Sequence[RowMapping]:
    """The live identities of a holder, oldest first."""
    query = (
        select(identities)
        .where(identities.c.principal_id == principal_id, identities.c.ended_at.is_(None))
        .order_by(identities.c.linked_at, identities.c.id)
    )
    return connection.execute(query).mappings().all()


def address_of(text: str) -> str:
    """An address as it is compared: exactly, but for the case of A to Z. Other letters have no
    case here: U+212A (the Kelvin sign) would become the k of somebody else.
    """
    return text.translate(_LOWER)


_LOWER = {
    ord(upper): ord(lower) for upper, lower in zip(ascii_uppercase, ascii_lowercase, strict=True)
}


def linked(connection: Connection, principal_id: str, identity: Identity, at: str) -> Change:
    """Makes the row; what is to be recorded. Raises IntegrityError where it is linked already."""
    identity_id = "id_" + token_hex(8)
    value = address_of(identity.value) if identity.claim == "email" else identity.value
    insert_identity(
        connection,
        {
            "id": identity_id,
            "principal_id": principal_id,
            "issuer": identity.issuer,
            "claim": identity.claim,
            "value": value,
            "linked_at": at,
        },
    )
    told = {"principal": principal_id, "claim": identity.claim}
    return Change("identity.link", identities, (identity_id,), told)
