# SPDX-License-Identifier: Apache-2.0
"""The chain speaks of administrative acts, too; rows that are there already are adopted into it."""

import sqlalchemy as sa
from alembic import op

from reticent_server.chain.acts import ADOPT, DIGEST
from reticent_server.chain.entries import Draft
from reticent_server.chain.repository import append
from reticent_server.chain.rows import as_stored, row_digest, subject_of
from reticent_server.chain.tables import chained
from reticent_server.domain.clock import SystemClock

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

ACTIONS = "account IS NULL OR action IN ('open', 'cap', 'debit', 'credit', 'reversal', 'settle')"
ABOUT = "(account IS NULL) <> (subject IS NULL)"
ACTOR = "reticent init"
CHAINED = {
    "access_principals": "principal",
    "access_keys": "key",
    "access_grants": "grant",
    "catalog_identity": "catalogue",
    "datasets": "dataset",
    "dataset_versions": "version",
}


def upgrade() -> None:
    if op.get_context().dialect.name == "postgresql":
        _change_entries()
    else:
        _replace_entries()
    op.create_index("ix_ledger_entries_subject_seq", "ledger_entries", ["subject", "seq"])
    _adopt(op.get_bind())


def downgrade() -> None:
    raise NotImplementedError("A ledger is not taken back; restore the database from a backup.")


def _change_entries() -> None:
    op.drop_constraint("ck_ledger_entries_action", "ledger_entries", type_="check")
    op.alter_column("ledger_entries", "action", type_=sa.String(40))
    op.alter_column("ledger_entries", "account", nullable=True)
    op.add_column("ledger_entries", sa.Column("subject", sa.String(300)))
    op.create_check_constraint("ck_ledger_entries_action", "ledger_entries", ACTIONS)
    op.create_check_constraint("ck_ledger_entries_about", "ledger_entries", ABOUT)


def _replace_entries() -> None:
    """SQLite changes no constraint of a table: a new one takes its place, with the same
    triggers.
    """
    _create_entries("ledger_entries_new")
    op.execute(
        "INSERT INTO ledger_entries_new (seq, action, account, actor, at, release_id, "
        "primary_change, secondary_change, detail, hash) SELECT seq, action, account, actor, at, "
        "release_id, primary_change, secondary_change, detail, hash FROM ledger_entries"
    )
    op.drop_table("ledger_entries")  # and its triggers and indexes
    op.rename_table("ledger_entries_new", "ledger_entries")
    op.create_index("ix_ledger_entries_account", "ledger_entries", ["account"])
    op.create_index("ix_ledger_entries_release_id", "ledger_entries", ["release_id"])
    for change in ("UPDATE", "DELETE"):
        op.execute(
            f"CREATE TRIGGER ledger_entries_no_{change.lower()} BEFORE {change} ON ledger_entries "
            "BEGIN SELECT RAISE(ABORT, 'ledger entries are immutable'); END"
        )


def _create_entries(name: str) -> None:
    op.create_table(
        name,
        sa.Column("seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("action", sa.String(40), nullable=False),
        sa.Column("account", sa.String(200)),
        sa.Column("subject", sa.String(300)),
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
        sa.CheckConstraint(ACTIONS, name="ck_ledger_entries_action"),
        sa.CheckConstraint(ABOUT, name="ck_ledger_entries_about"),
    )


def _adopt(connection: sa.Connection) -> None:
    """One entry for each row that is there: from now on no row is changed without one."""
    at = SystemClock().now().isoformat(timespec="microseconds")
    drafts = []
    for name, noun in CHAINED.items():
        table = sa.Table(name, sa.MetaData(), info=chained(noun), autoload_with=connection)
        keys = [column.name for column in table.primary_key.columns]
        for row in connection.execute(as_stored(table).order_by(*keys)).mappings():
            subject = subject_of(table, [row[key] for key in keys])
            detail = {DIGEST: row_digest(table, row)}
            drafts.append(Draft(ADOPT, None, ACTOR, at, detail=detail, subject=subject))
    if drafts:
        append(connection, drafts)
