# SPDX-License-Identifier: Apache-2.0
"""Releases that a curator has published to all analysts with a grant."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "published_releases",
        sa.Column("release_id", sa.String(40), nullable=False),
        sa.Column("dataset", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("release_id", name="pk_published_releases"),
        sa.ForeignKeyConstraint(
            ["dataset"], ["datasets.name"], name="fk_published_releases_dataset_datasets"
        ),
    )


def downgrade() -> None:
    op.drop_table("published_releases")
