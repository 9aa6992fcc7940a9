# SPDX-License-Identifier: Apache-2.0
"""Windows of the rate limit, shared by all processes."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "access_rates",
        sa.Column("id", sa.String(200), nullable=False),
        sa.Column("hits", sa.BigInteger(), nullable=False),
        sa.Column("until_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_access_rates"),
    )


def downgrade() -> None:
    op.drop_table("access_rates")
