# SPDX-License-Identifier: Apache-2.0
"""Identities at an identity provider, linked with holders; sessions that were begun by one."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

LIVE = sa.text("ended_at IS NULL")


def upgrade() -> None:
    op.create_table(
        "access_identities",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("principal_id", sa.String(32), nullable=False),
        sa.Column("issuer", sa.String(255), nullable=False),
        sa.Column("claim", sa.String(16), nullable=False),
        sa.Column("value", sa.String(255), nullable=False),
        sa.Column("linked_at", sa.String(32), nullable=False),
        sa.Column("ended_at", sa.String(32)),
        sa.PrimaryKeyConstraint("id", name="pk_access_identities"),
        sa.ForeignKeyConstraint(
            ["principal_id"],
            ["access_principals.id"],
            name="fk_access_identities_principal_id_access_principals",
        ),
        sa.CheckConstraint("claim IN ('sub', 'email')", name="ck_access_identities_claim"),
    )
    op.create_index("ix_access_identities_principal_id", "access_identities", ["principal_id"])
    op.create_index(
        "uq_access_identities_live",
        "access_identities",
        ["issuer", "claim", "value"],
        unique=True,
        sqlite_where=LIVE,
        postgresql_where=LIVE,
    )
    # (A statement of its own: SQLite takes a reference with a new column, and at no other time.)
    op.execute(
        "ALTER TABLE access_sessions ADD COLUMN identity_id VARCHAR(32) "
        "CONSTRAINT fk_access_sessions_identity_id_access_identities "
        "REFERENCES access_identities (id)"
    )


def downgrade() -> None:
    raise NotImplementedError("A ledger is not taken back; restore the database from a backup.")
