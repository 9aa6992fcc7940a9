# SPDX-License-Identifier: Apache-2.0
"""The entries, and the head that puts their writers in a line.

Entries are only ever inserted; the migration adds triggers that say so. A table whose rows must be
as the entries say is declared with `info=chained("…")`.
"""

from collections.abc import Sequence

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    Text,
)

from reticent_server.database import metadata

_CHAINED = "chained"


def chained(noun: str) -> dict[str, str]:
    """The `info` of a table whose rows `ledger verify` holds against the chain (chain.acts).

    noun: what entries call its rows, as "key" or "grant".
    """
    return {_CHAINED: noun}


# account: of a budget or a charge. subject: of an administrative act, the row that it is about.
# detail: canonical JSON of what belongs to the action. at: null for settle.
entries = Table(
    "ledger_entries",
    metadata,
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("action", String(40), nullable=False),
    Column("account", String(200), ForeignKey("ledger_accounts.id")),
    Column("subject", String(300)),
    Column("actor", String(80), nullable=False),
    Column("at", String(32)),
    Column("release_id", String(40), ForeignKey("ledger_releases.id")),
    Column("primary_change", BigInteger, nullable=False),
    Column("secondary_change", BigInteger, nullable=False),
    Column("detail", Text, nullable=False),
    Column("hash", String(64), nullable=False),
    CheckConstraint(
        "account IS NULL OR action IN ('open', 'cap', 'debit', 'credit', 'reversal', 'settle')",
        name="action",
    ),
    CheckConstraint("(account IS NULL) <> (subject IS NULL)", name="about"),
    Index(None, "account"),
    Index(None, "release_id"),
    Index(None, "subject", "seq"),
)

# One row: the last entry. Updating it first is what puts writers of entries in a line.
head = Table(
    "ledger_head",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, nullable=False),
    Column("hash", String(64), nullable=False),
    CheckConstraint("id = 1", name="single"),
)


def chained_tables() -> Sequence[Table]:
    """The tables declared with `chained`, by name; those of modules that were imported."""
    return [table for _, table in sorted(metadata.tables.items()) if _CHAINED in table.info]


def noun_of(table: Table) -> str:
    """What entries call the table's rows. Raises ValueError for a table that is not chained."""
    if _CHAINED not in table.info:
        raise ValueError(f"{table.name} is not a chained table")
    return str(table.info[_CHAINED])
