# SPDX-License-Identifier: Apache-2.0
"""Proposals: acts that a second person must approve."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

STATUS = "status IN ('pending', 'approved', 'refused', 'used')"


def upgrade() -> None:
    op.create_table(
        "access_proposals",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("act", sa.String(16), nullable=False),
        sa.Column("population", sa.String(128), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("proposed_by", sa.String(80), nullable=False),
        sa.Column("proposed_at", sa.String(32), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("decided_by", sa.String(80)),
        sa.PrimaryKeyConstraint("id", name="pk_access_proposals"),
        sa.CheckConstraint(STATUS, name="ck_access_proposals_status"),
    )
    op.create_index("ix_access_proposals_status", "access_proposals", ["status"])


def downgrade() -> None:
    op.drop_table("access_proposals")
