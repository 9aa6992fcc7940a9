# SPDX-License-Identifier: Apache-2.0
"""The catalogue: data sets and their versions."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "catalog_identity",
        sa.Column("singleton", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("identity", sa.String(32), nullable=False),
        sa.PrimaryKeyConstraint("singleton", name="pk_catalog_identity"),
    )
    op.create_table(
        "datasets",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("population", sa.String(64), nullable=False),
        sa.Column("policy", sa.JSON(), nullable=False),
        sa.Column("retired", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_datasets"),
    )
    op.create_table(
        "dataset_versions",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("dataset", sa.String(64), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("n", sa.BigInteger(), nullable=False),
        sa.Column("schema", sa.JSON(), nullable=False),
        sa.Column("source", sa.JSON(), nullable=False),
        sa.Column("profile", sa.JSON(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_dataset_versions"),
        sa.ForeignKeyConstraint(
            ["dataset"], ["datasets.name"], name="fk_dataset_versions_dataset_datasets"
        ),
        sa.UniqueConstraint("dataset", "version", name="uq_dataset_versions_dataset_version"),
    )


def downgrade() -> None:
    op.drop_table("dataset_versions")
    op.drop_table("datasets")
    op.drop_table("catalog_identity")
