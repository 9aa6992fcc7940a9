"""Who may ask: holders of keys, their keys, what data sets they may ask about, and their sessions."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    String,
    Table,
    UniqueConstraint,
)

from reticent_server.chain.tables import chained
from reticent_server.database import metadata

principals = Table(
    "access_principals",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("name", String(64), nullable=False),
    Column("role", String(16), nullable=False),
    Column("created_at", String(32), nullable=False),
    Column("revoked_at", String(32)),
    UniqueConstraint("name"),
    CheckConstraint("role IN ('analyst', 'curator')", name="role"),
    info=chained("principal"),
)

# digest: HMAC-SHA-256 of the whole key under the pepper, hexadecimal. expires_ms: since the epoch.
keys = Table(
    "access_keys",
    metadata,
    Column("id", String(16), primary_key=True),
    Column("principal_id", String(32), ForeignKey(principals.c.id), nullable=False),
    Column("digest", String(64), nullable=False),
    Column("created_at", String(32), nullable=False),
    Column("expires_ms", BigInteger),
    Column("revoked_at", String(32)),
    Index(None, "principal_id"),
    info=chained("key"),
)

grants = Table(
    "access_grants",
    metadata,
    Column("analyst_id", String(32), ForeignKey(principals.c.id), primary_key=True),
    Column("dataset", String(128), primary_key=True),
    Column("granted_at", String(32), nullable=False),
    info=chained("grant"),
)

# Sessions of the console. key_id: of the key that was used to sign in. When one was last seen is in its
# cookie, as it changes with every page.
sessions = Table(
    "access_sessions",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("principal_id", String(32), ForeignKey(principals.c.id), nullable=False),
    Column("key_id", String(16), ForeignKey(keys.c.id)),
    Column("begun_at", String(32), nullable=False),
    Column("ended_at", String(32)),
    Index(None, "principal_id"),
    info=chained("session"),
)

# Tokens of forms that were sent, until they would have ended by themselves (since the epoch).
form_tokens = Table(
    "access_form_tokens",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("until_ms", BigInteger, nullable=False),
    Index(None, "until_ms"),
)

# Windows of the rate limit: how many requests of a key were handed out until when (since the epoch).
rates = Table(
    "access_rates",
    metadata,
    Column("id", String(200), primary_key=True),
    Column("hits", BigInteger, nullable=False),
    Column("until_ms", BigInteger, nullable=False),
)
