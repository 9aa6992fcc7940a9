# SPDX-License-Identifier: Apache-2.0
"""Access and ledger: principals, keys, grants; accounts, releases, entries and the chain's head."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

NO_ENTRY = "0" * 64


def upgrade() -> None:
    _access()
    _accounts()
    _releases()
    _entries()
    _entries_are_immutable()


def downgrade() -> None:
    raise NotImplementedError("A ledger is not taken back; restore the database from a backup.")


def _access() -> None:
    op.create_table(
        "access_principals",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("created_at", sa.String(32), nullable=False),
        sa.Column("revoked_at", sa.String(32)),
        sa.PrimaryKeyConstraint("id", name="pk_access_principals"),
        sa.UniqueConstraint("name", name="uq_access_principals_name"),
        sa.CheckConstraint("role IN ('analyst', 'curator')", name="ck_access_principals_role"),
    )
    op.create_table(
        "access_keys",
        sa.Column("id", sa.String(16), nullable=False),
        sa.Column("principal_id", sa.String(32), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("created_at", sa.String(32), nullable=False),
        sa.Column("expires_ms", sa.BigInteger()),
        sa.Column("revoked_at", sa.String(32)),
        sa.PrimaryKeyConstraint("id", name="pk_access_keys"),
        sa.ForeignKeyConstraint(
            ["principal_id"],
            ["access_principals.id"],
            name="fk_access_keys_principal_id_access_principals",
        ),
    )
    op.create_index("ix_access_keys_principal_id", "access_keys", ["principal_id"])
    op.create_table(
        "access_grants",
        sa.Column("analyst_id", sa.String(32), nullable=False),
        sa.Column("dataset", sa.String(128), nullable=False),
        sa.Column("granted_at", sa.String(32), nullable=False),
        sa.PrimaryKeyConstraint("analyst_id", "dataset", name="pk_access_grants"),
        sa.ForeignKeyConstraint(
            ["analyst_id"],
            ["access_principals.id"],
            name="fk_access_grants_analyst_id_access_principals",
        ),
    )


def _accounts() -> None:
    op.create_table(
        "ledger_accounts",
        sa.Column("id", sa.String(200), nullable=False),
        sa.Column("analyst_id", sa.String(32)),
        sa.Column("dataset", sa.String(128)),
        sa.Column("population", sa.String(128), nullable=False),
        sa.Column("rule", sa.String(8), nullable=False),
        sa.Column("epsilon", sa.BigInteger(), nullable=False),
        sa.Column("delta", sa.BigInteger(), nullable=False),
        sa.Column("primary_cap", sa.BigInteger(), nullable=False),
        sa.Column("secondary_cap", sa.BigInteger(), nullable=False),
        sa.Column("primary_spent", sa.BigInteger(), nullable=False),
        sa.Column("secondary_spent", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_ledger_accounts"),
        sa.CheckConstraint("rule IN ('basic', 'zcdp')", name="ck_ledger_accounts_rule"),
        sa.CheckConstraint(
            "primary_spent BETWEEN 0 AND primary_cap", name="ck_ledger_accounts_primary_spent"
        ),
        sa.CheckConstraint(
            "secondary_spent BETWEEN 0 AND secondary_cap", name="ck_ledger_accounts_secondary_spent"
        ),
    )
    op.create_index("ix_ledger_accounts_analyst_id", "ledger_accounts", ["analyst_id"])


def _releases() -> None:
    op.create_table(
        "ledger_releases",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("owner", sa.String(32), nullable=False),
        sa.Column("dataset", sa.String(128), nullable=False),
        sa.Column("version_id", sa.String(64), nullable=False),
        sa.Column("population", sa.String(128), nullable=False),
        sa.Column("request", sa.Text(), nullable=False),
        sa.Column("request_sha256", sa.String(64), nullable=False),
        sa.Column("idempotency_key", sa.String(255)),
        sa.Column("epsilon", sa.BigInteger(), nullable=False),
        sa.Column("delta", sa.BigInteger(), nullable=False),
        sa.Column("rho", sa.BigInteger(), nullable=False),
        sa.Column("rho_delta", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.String(32), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("body", sa.LargeBinary()),
        sa.Column("lease", sa.String(40), nullable=False),
        sa.Column("lease_until_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_ledger_releases"),
        sa.UniqueConstraint(
            "owner", "idempotency_key", name="uq_ledger_releases_owner_idempotency_key"
        ),
        sa.CheckConstraint(
            "(status = 'pending') = (body IS NULL)", name="ck_ledger_releases_settled"
        ),
    )
    op.create_index(
        "ix_ledger_releases_owner_created_at", "ledger_releases", ["owner", "created_at"]
    )
    op.create_index(
        "ix_ledger_releases_status_lease_until_ms", "ledger_releases", ["status", "lease_until_ms"]
    )


def _entries() -> None:
    op.create_table(
        "ledger_entries",
        sa.Column("seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("action", sa.String(16), nullable=False),
        sa.Column("account", sa.String(200), nullable=False),
        sa.Column("actor", sa.String(80), nullable=False),
        sa.Column("at", sa.String(32)),
        sa.Column("release_id", sa.String(40)),
        sa.Column("primary_change", sa.BigInteger(), nullable=False),
        sa.Column("secondary_change", sa.BigInteger(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_ledger_entries"),
        sa.ForeignKeyConstraint(
            ["account"], ["ledger_accounts.id"], name="fk_ledger_entries_account_ledger_accounts"
        ),
        sa.ForeignKeyConstraint(
            ["release_id"],
            ["ledger_releases.id"],
            name="fk_ledger_entries_release_id_ledger_releases",
        ),
        sa.CheckConstraint(
            "action IN ('open', 'cap', 'debit', 'credit', 'reversal', 'settle')",
            name="ck_ledger_entries_action",
        ),
    )
    op.create_index("ix_ledger_entries_account", "ledger_entries", ["account"])
    op.create_index("ix_ledger_entries_release_id", "ledger_entries", ["release_id"])
    head = op.create_table(
        "ledger_head",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_ledger_head"),
        sa.CheckConstraint("id = 1", name="ck_ledger_head_single"),
    )
    op.bulk_insert(head, [{"id": 1, "seq": 0, "hash": NO_ENTRY}])


def _entries_are_immutable() -> None:
    if op.get_context().dialect.name == "postgresql":
        op.execute(
            "CREATE FUNCTION ledger_entries_immutable() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'ledger entries are immutable'; END $$"
        )
        op.execute(
            "CREATE TRIGGER ledger_entries_immutable BEFORE UPDATE OR DELETE OR TRUNCATE "
            "ON ledger_entries EXECUTE FUNCTION ledger_entries_immutable()"
        )
        return
    for change in ("UPDATE", "DELETE"):
        op.execute(
            f"CREATE TRIGGER ledger_entries_no_{change.lower()} BEFORE {change} ON ledger_entries "
            "BEGIN SELECT RAISE(ABORT, 'ledger entries are immutable'); END"
        )
