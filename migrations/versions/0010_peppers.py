# SPDX-License-Identifier: Apache-2.0
"""Several peppers: which one a key's digest is under. Null, in the rows that are there: the first.

(The chain's digest of a row leaves out what is null, so no entry is needed.)
"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "access_peppers",
        sa.Column("id", sa.String(16), nullable=False),
        sa.Column("made_at", sa.String(32), nullable=False),
        sa.Column("retired_at", sa.String(32)),
        sa.PrimaryKeyConstraint("id", name="pk_access_peppers"),
    )
    op.add_column("access_keys", sa.Column("pepper_id", sa.String(16)))


def downgrade() -> None:
    raise NotImplementedError("A ledger is not taken back; restore the database from a backup.")
