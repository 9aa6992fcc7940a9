# SPDX-License-Identifier: Apache-2.0
"""Accounts under the rule gdp, and what a release costs there where all of its noise is
Gaussian.
"""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

RULE = "ck_ledger_accounts_rule"


def upgrade() -> None:
    op.add_column("ledger_releases", sa.Column("gaussian", sa.BigInteger()))
    _allow("rule IN ('basic', 'zcdp', 'gdp')")


def downgrade() -> None:
    """Fails where an account has the rule: nothing else keeps its promise."""
    _allow("rule IN ('basic', 'zcdp')")
    op.drop_column("ledger_releases", "gaussian")


def _allow(rules: str) -> None:
    with op.batch_alter_table("ledger_accounts") as accounts:  # SQLite has a new table made
        accounts.drop_constraint(RULE, type_="check")
        accounts.create_check_constraint(RULE, rules)
