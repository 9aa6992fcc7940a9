# SPDX-License-Identifier: Apache-2.0
"""Populations with their units and places; those of earlier data sets have a row when a spine is
declared for them.
"""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "populations",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("unit", sa.String(200), nullable=True),
        sa.Column("spine", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("separate", sa.String(1000), nullable=True),
        sa.PrimaryKeyConstraint("name", name="pk_populations"),
    )


def downgrade() -> None:
    op.drop_table("populations")
