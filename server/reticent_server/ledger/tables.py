"""Accounts, releases, and the hash-chained entries that both follow from.

Amounts are integers (domain.cost): primary and secondary are (ε, δ) under the rule basic and
(ρ, δ) under zcdp. Entries are only ever inserted; the migration adds triggers that say so.
"""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from reticent_server.database import metadata

# analyst_id and dataset are null for a population's account. epsilon, delta: the budget as given.
accounts = Table(
    "ledger_accounts",
    metadata,
    Column("id", String(200), primary_key=True),
    Column("analyst_id", String(32)),
    Column("dataset", String(128)),
    Column("population", String(128), nullable=False),
    Column("rule", String(8), nullable=False),
    Column("epsilon", BigInteger, nullable=False),
    Column("delta", BigInteger, nullable=False),
    Column("primary_cap", BigInteger, nullable=False),
    Column("secondary_cap", BigInteger, nullable=False),
    Column("primary_spent", BigInteger, nullable=False),
    Column("secondary_spent", BigInteger, nullable=False),
    CheckConstraint("rule IN ('basic', 'zcdp')", name="rule"),
    CheckConstraint("primary_spent BETWEEN 0 AND primary_cap", name="primary_spent"),
    CheckConstraint("secondary_spent BETWEEN 0 AND secondary_cap", name="secondary_spent"),
    Index(None, "analyst_id"),
)

# owner: the analyst's id, or '' for the curator's own. body: the reply's bytes once it is settled.
# There is no time of completion: it could depend on private cells.
releases = Table(
    "ledger_releases",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("owner", String(32), nullable=False),
    Column("dataset", String(128), nullable=False),
    Column("version_id", String(64), nullable=False),
    Column("population", String(128), nullable=False),
    Column("request", Text, nullable=False),
    Column("request_sha256", String(64), nullable=False),
    Column("idempotency_key", String(255)),
    Column("epsilon", BigInteger, nullable=False),
    Column("delta", BigInteger, nullable=False),
    Column("rho", BigInteger, nullable=False),
    Column("rho_delta", BigInteger, nullable=False),
    Column("created_at", String(32), nullable=False),
    Column("status", String(16), nullable=False),
    Column("body", LargeBinary),
    Column("lease", String(40), nullable=False),
    Column("lease_until_ms", BigInteger, nullable=False),
    UniqueConstraint("owner", "idempotency_key"),
    CheckConstraint("(status = 'pending') = (body IS NULL)", name="settled"),
    Index(None, "owner", "created_at"),
    Index(None, "status", "lease_until_ms"),
)

# detail: canonical JSON of what belongs to the action. at: null for settle.
entries = Table(
    "ledger_entries",
    metadata,
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("action", String(16), nullable=False),
    Column("account", String(200), ForeignKey(accounts.c.id), nullable=False),
    Column("actor", String(80), nullable=False),
    Column("at", String(32)),
    Column("release_id", String(40), ForeignKey(releases.c.id)),
    Column("primary_change", BigInteger, nullable=False),
    Column("secondary_change", BigInteger, nullable=False),
    Column("detail", Text, nullable=False),
    Column("hash", String(64), nullable=False),
    CheckConstraint(
        "action IN ('open', 'cap', 'debit', 'credit', 'reversal', 'settle')", name="action"
    ),
    Index(None, "account"),
    Index(None, "release_id"),
)

# One row: the last entry. Updating it first is what puts writers of entries in a line.
head = Table(
    "ledger_head",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, nullable=False),
    Column("hash", String(64), nullable=False),
    CheckConstraint("id = 1", name="single"),
)
