# SPDX-License-Identifier: Apache-2.0
"""Roles of curators: null in the rows that are there, which keep every right that they had.

(The chain's digest of a row leaves out what is null, so no entry is needed.)
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("access_principals", sa.Column("roles", sa.String(80)))


def downgrade() -> None:
    op.drop_column("access_principals", "roles")
