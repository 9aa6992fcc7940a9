# SPDX-License-Identifier: Apache-2.0
"""Who may ask: holders of keys, their keys, what data sets they may ask about, and their
sessions."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from reticent_server.chain.tables import chained
from reticent_server.database import metadata

# role: of whom it is, an analyst or one of the staff. roles: of the staff, as "auditor operator";
# null: a curator from before there were roles, who has every role of the staff.
principals = Table(
    "access_principals",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("name", String(64), nullable=False),
    Column("role", String(16), nullable=False),
    Column("created_at", String(32), nullable=False),
    Column("revoked_at", String(32)),
    Column("roles", String(80)),
    UniqueConstraint("name"),
    CheckConstraint("role IN ('analyst', 'curator')", name="role"),
    info=chained("principal"),
)

# Secrets under which keys are stored; the secrets themselves are elsewhere (access.secret_places).
peppers = Table(
    "access_peppers",
    metadata,
    Column("id", String(16), primary_key=True),
    Column("made_at", String(32), nullable=False),
    Column("retired_at", String(32)),
    info=chained("pepper"),
)

# digest: HMAC-SHA-256 of the whole key under the pepper, hexadecimal. pepper_id: under which; null:
# under the first. expires_ms: since the epoch.
keys = Table(
    "access_keys",
    metadata,
    Column("id", String(16), primary_key=True),
    Column("principal_id", String(32), ForeignKey(principals.c.id), nullable=False),
    Column("digest", String(64), nullable=False),
    Column("created_at", String(32), nullable=False),
    Column("expires_ms", BigInteger),
    Column("revoked_at", String(32)),
    Column("pepper_id", String(16)),
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

# Who somebody is at the identity provider. claim: "sub", or "email" (which must be verified there).
identities = Table(
    "access_identities",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("principal_id", String(32), ForeignKey(principals.c.id), nullable=False),
    Column("issuer", String(255), nullable=False),
    Column("claim", String(16), nullable=False),
    Column("value", String(255), nullable=False),
    Column("linked_at", String(32), nullable=False),
    Column("ended_at", String(32)),
    CheckConstraint("claim IN ('sub', 'email')", name="claim"),
    Index(None, "principal_id"),
    # Where ended_at IS NULL: only the migration says so, as an index that does imports all of
    # SQLAlchemy's dialects of PostgreSQL, in every command.
    Index("uq_access_identities_live", "issuer", "claim", "value", unique=True),
    info=chained("identity"),
)

# Sessions of the console. key_id, identity_id: of the key or the identity that was used to sign in.
# When one was last seen is in its cookie, as it changes with every page.
sessions = Table(
    "access_sessions",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("principal_id", String(32), ForeignKey(principals.c.id), nullable=False),
    Column("key_id", String(16), ForeignKey(keys.c.id)),
    Column("begun_at", String(32), nullable=False),
    Column("ended_at", String(32)),
    Column("identity_id", String(32), ForeignKey(identities.c.id)),
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

# Windows of the rate limit: how many requests of a key were handed out until when (since the
# epoch).
rates = Table(
    "access_rates",
    metadata,
    Column("id", String(200), primary_key=True),
    Column("hits", BigInteger, nullable=False),
    Column("until_ms", BigInteger, nullable=False),
)

# What accounts belong to. Every analyst has a project of one, whose id and name are the analyst's
# id. ends_on: the last day, ISO 8601 in UTC; null: it has no end.
projects = Table(
    "access_projects",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("name", String(64), nullable=False),
    Column("purpose", String(2000), nullable=False),
    Column("ends_on", String(10)),
    Column("created_at", String(32), nullable=False),
    Column("closed_at", String(32)),
    UniqueConstraint("name"),
    info=chained("project"),
)

members = Table(
    "access_members",
    metadata,
    Column("project_id", String(32), ForeignKey(projects.c.id), primary_key=True),
    Column("analyst_id", String(32), ForeignKey(principals.c.id), primary_key=True),
    Column("added_at", String(32), nullable=False),
    Index(None, "analyst_id"),
    info=chained("member"),
)

# What the members of a project may ask about. (Of projects of one it is in `grants`.)
project_grants = Table(
    "access_project_grants",
    metadata,
    Column("project_id", String(32), ForeignKey(projects.c.id), primary_key=True),
    Column("dataset", String(128), primary_key=True),
    Column("granted_at", String(32), nullable=False),
    info=chained("project_grant"),
)

# What analysts have asked for. document: canonical JSON of the wish and of the plan behind it.
# reason: of whoever has decided. project_id: of the project that came of it.
requests = Table(
    "access_requests",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("analyst_id", String(32), ForeignKey(principals.c.id), nullable=False),
    Column("made_at", String(32), nullable=False),
    Column("document", Text, nullable=False),
    Column("status", String(16), nullable=False),
    Column("decided_at", String(32)),
    Column("decided_by", String(80)),
    Column("reason", String(400)),
    Column("project_id", String(32), ForeignKey(projects.c.id)),
    CheckConstraint("status IN ('pending', 'approved', 'refused')", name="status"),
    Index(None, "analyst_id"),
    Index(None, "status"),
    info=chained("request"),
)

# Acts that a second person must approve. document: canonical JSON of the act.
proposals = Table(
    "access_proposals",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("act", String(16), nullable=False),
    Column("population", String(128), nullable=False),
    Column("document", Text, nullable=False),
    Column("proposed_by", String(80), nullable=False),
    Column("proposed_at", String(32), nullable=False),
    Column("status", String(16), nullable=False),
    Column("decided_by", String(80)),
    CheckConstraint("status IN ('pending', 'approved', 'refused', 'used')", name="status"),
    Index(None, "status"),
    info=chained("proposal"),
)

# Protocols of pooled studies that a curator has accepted for a data set. document: canonical JSON,
# whose SHA-256 is `digest`. site: what the protocol calls this data set's holder. signature: of
# this installation over the document, detached (RFC 7515, appendix F).
protocols = Table(
    "access_protocols",
    metadata,
    Column("digest", String(64), primary_key=True),
    Column("dataset", String(128), primary_key=True),
    Column("site", String(128), nullable=False),
    Column("document", Text, nullable=False),
    Column("signature", Text, nullable=False),
    Column("accepted_by", String(80), nullable=False),
    Column("accepted_at", String(32), nullable=False),
    Column("withdrawn_at", String(32)),
    info=chained("protocol"),
)
