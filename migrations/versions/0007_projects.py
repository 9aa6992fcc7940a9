# SPDX-License-Identifier: Apache-2.0
"""Projects, which accounts belong to, and requests for them. Every analyst's accounts become those
of a project of one, under the analyst's id, so that no account and no entry changes.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

from reticent_server.chain.acts import ADOPT, DIGEST
from reticent_server.chain.entries import Draft
from reticent_server.chain.repository import append
from reticent_server.chain.rows import row_digest, subject_of
from reticent_server.chain.tables import chained
from reticent_server.domain.clock import SystemClock

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

ACTOR = "reticent init"
OWN = "An analyst's own budgets."
STATUS = "status IN ('pending', 'approved', 'refused')"


def upgrade() -> None:
    _create_projects()
    _create_requests()
    op.add_column("ledger_releases", sa.Column("project_id", sa.String(32)))
    _make_own(op.get_bind())


def downgrade() -> None:
    raise NotImplementedError("A ledger is not taken back; restore the database from a backup.")


def _create_projects() -> None:
    op.create_table(
        "access_projects",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("purpose", sa.String(2000), nullable=False),
        sa.Column("ends_on", sa.String(10)),
        sa.Column("created_at", sa.String(32), nullable=False),
        sa.Column("closed_at", sa.String(32)),
        sa.PrimaryKeyConstraint("id", name="pk_access_projects"),
        sa.UniqueConstraint("name", name="uq_access_projects_name"),
    )
    op.create_table(
        "access_members",
        sa.Column("project_id", sa.String(32), nullable=False),
        sa.Column("analyst_id", sa.String(32), nullable=False),
        sa.Column("added_at", sa.String(32), nullable=False),
        sa.PrimaryKeyConstraint("project_id", "analyst_id", name="pk_access_members"),
        _reference("access_members", "project_id", "access_projects"),
        _reference("access_members", "analyst_id", "access_principals"),
    )
    op.create_index("ix_access_members_analyst_id", "access_members", ["analyst_id"])
    op.create_table(
        "access_project_grants",
        sa.Column("project_id", sa.String(32), nullable=False),
        sa.Column("dataset", sa.String(128), nullable=False),
        sa.Column("granted_at", sa.String(32), nullable=False),
        sa.PrimaryKeyConstraint("project_id", "dataset", name="pk_access_project_grants"),
        _reference("access_project_grants", "project_id", "access_projects"),
    )


def _create_requests() -> None:
    op.create_table(
        "access_requests",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("analyst_id", sa.String(32), nullable=False),
        sa.Column("made_at", sa.String(32), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("decided_at", sa.String(32)),
        sa.Column("decided_by", sa.String(80)),
        sa.Column("reason", sa.String(400)),
        sa.Column("project_id", sa.String(32)),
        sa.PrimaryKeyConstraint("id", name="pk_access_requests"),
        _reference("access_requests", "analyst_id", "access_principals"),
        _reference("access_requests", "project_id", "access_projects"),
        sa.CheckConstraint(STATUS, name="ck_access_requests_status"),
    )
    for column in ("analyst_id", "status"):
        op.create_index(f"ix_access_requests_{column}", "access_requests", [column])


def _reference(table: str, column: str, to: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [f"{to}.id"], name=f"fk_{table}_{column}_{to}")


def _make_own(connection: sa.Connection) -> None:
    """A project of one for each analyst, with an entry for each new row."""
    at = SystemClock().now().isoformat(timespec="microseconds")
    projects, members = (_table(connection, f"access_{n}", n[:-1]) for n in ("projects", "members"))
    ids = "SELECT id FROM access_principals WHERE role = 'analyst' ORDER BY id"
    drafts = []
    for holder in connection.execute(sa.text(ids)).scalars().all():
        project = {"id": holder, "name": holder, "purpose": OWN, "created_at": at}
        drafts.append(_made(connection, projects, project | {"ends_on": None, "closed_at": None}))
        member = {"project_id": holder, "analyst_id": holder, "added_at": at}
        drafts.append(_made(connection, members, member))
    if drafts:
        append(connection, drafts)


def _table(connection: sa.Connection, name: str, noun: str) -> sa.Table:
    return sa.Table(name, sa.MetaData(), info=chained(noun), autoload_with=connection)


def _made(connection: sa.Connection, table: sa.Table, row: dict[str, Any]) -> Draft:
    connection.execute(table.insert().values(row))
    subject = subject_of(table, [row[column.name] for column in table.primary_key.columns])
    return Draft(
        ADOPT,
        None,
        ACTOR,
        row.get("created_at") or row["added_at"],
        detail={DIGEST: row_digest(table, row)},
        subject=subject,
    )
