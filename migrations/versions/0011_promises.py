# SPDX-License-Identifier: Apache-2.0
"""What was promised when a release was charged: a look at a pending one plans nothing."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("ledger_releases", sa.Column("promise", sa.Text()))


def downgrade() -> None:
    op.drop_column("ledger_releases", "promise")
