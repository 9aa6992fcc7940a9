# SPDX-License-Identifier: Apache-2.0
"""Sessions of the console that the server can end, tokens of forms that were sent, planned
turns.
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "access_sessions",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("principal_id", sa.String(32), nullable=False),
        sa.Column("key_id", sa.String(16)),
        sa.Column("begun_at", sa.String(32), nullable=False),
        sa.Column("ended_at", sa.String(32)),
        sa.PrimaryKeyConstraint("id", name="pk_access_sessions"),
        sa.ForeignKeyConstraint(
            ["principal_id"],
            ["access_principals.id"],
            name="fk_access_sessions_principal_id_access_principals",
        ),
        sa.ForeignKeyConstraint(
            ["key_id"], ["access_keys.id"], name="fk_access_sessions_key_id_access_keys"
        ),
    )
    op.create_index("ix_access_sessions_principal_id", "access_sessions", ["principal_id"])
    op.create_table(
        "access_form_tokens",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("until_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_access_form_tokens"),
    )
    op.create_index("ix_access_form_tokens_until_ms", "access_form_tokens", ["until_ms"])
    op.add_column("ledger_releases", sa.Column("start_ms", sa.BigInteger()))
    op.add_column("ledger_releases", sa.Column("duration_ms", sa.BigInteger()))


def downgrade() -> None:
    op.drop_column("ledger_releases", "duration_ms")
    op.drop_column("ledger_releases", "start_ms")
    op.drop_table("access_form_tokens")
    op.drop_table("access_sessions")
