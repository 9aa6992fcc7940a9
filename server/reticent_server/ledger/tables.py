# SPDX-License-Identifier: Apache-2.0
"""Accounts and releases, which both follow from the entries of the chain.

Amounts are integers (domain.cost): primary and secondary are (ε, δ) under the rule basic and
(ρ, δ) under zcdp and gdp.
"""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Index,
    LargeBinary,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from reticent_server.database import metadata

# analyst_id: of an analyst, or of a project that analysts share. analyst_id and dataset are null
# for a population's account. epsilon, delta: the budget as given.
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
    CheckConstraint("rule IN ('basic', 'zcdp', 'gdp')", name="rule"),
    CheckConstraint("primary_spent BETWEEN 0 AND primary_cap", name="primary_spent"),
    CheckConstraint("secondary_spent BETWEEN 0 AND secondary_cap", name="secondary_spent"),
    Index(None, "analyst_id"),
)

# owner: the analyst's id, or '' for the curator's own. body: the reply's bytes once it is settled.
# There is no time of completion: it could depend on private cells. start_ms: when its computation
# begins by plan, since the epoch; duration_ms: from there to when it is shown, by plan. project_id:
# of the shared project that is charged; null: the owner's own. gaussian: what it costs under the
# rule gdp where all of its noise is Gaussian; null, also in releases of an earlier version: not
# known to be. promise: the guarantee and the deadline, as JSON, as they were planned when it was
# charged.
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
    Column("start_ms", BigInteger),
    Column("duration_ms", BigInteger),
    Column("project_id", String(32)),
    Column("promise", Text),
    Column("gaussian", BigInteger),
    UniqueConstraint("owner", "idempotency_key"),
    CheckConstraint("(status = 'pending') = (body IS NULL)", name="settled"),
    Index(None, "owner", "created_at"),
    Index(None, "status", "lease_until_ms"),
)
