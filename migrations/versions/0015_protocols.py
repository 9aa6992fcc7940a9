# SPDX-License-Identifier: Apache-2.0
"""Protocols of pooled studies that curators have accepted."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "access_protocols",
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("dataset", sa.String(128), nullable=False),
        sa.Column("site", sa.String(128), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("signature", sa.Text(), nullable=False),
        sa.Column("accepted_by", sa.String(80), nullable=False),
        sa.Column("accepted_at", sa.String(32), nullable=False),
        sa.Column("withdrawn_at", sa.String(32)),
        sa.PrimaryKeyConstraint("digest", "dataset", name="pk_access_protocols"),
    )


def downgrade() -> None:
    op.drop_table("access_protocols")
