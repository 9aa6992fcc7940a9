# SPDX-License-Identifier: Apache-2.0
"""The catalogue's tables. Nothing in them depends on a private cell except released profiles."""

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Integer,
    String,
    Table,
    UniqueConstraint,
)

from reticent_server.chain.tables import chained
from reticent_server.database import metadata

_json = JSON(none_as_null=True)

catalog_identity = Table(
    "catalog_identity",
    metadata,
    Column("singleton", Integer, primary_key=True, autoincrement=False),
    Column("identity", String(32), nullable=False),
    info=chained("catalogue"),
)

populations = Table(
    "populations",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("unit", String(200), nullable=True),
    Column("spine", _json, nullable=True),
    Column("separate", String(1000), nullable=True),
    info=chained("population"),
)

datasets = Table(
    "datasets",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("population", String(64), nullable=False),
    Column("policy", _json, nullable=False),
    Column("retired", Boolean, nullable=False),
    info=chained("dataset"),
)

published_releases = Table(
    "published_releases",
    metadata,
    Column("release_id", String(40), primary_key=True),
    Column("dataset", String(64), ForeignKey("datasets.name"), nullable=False),
    info=chained("publication"),
)

dataset_versions = Table(
    "dataset_versions",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("dataset", String(64), ForeignKey("datasets.name"), nullable=False),
    Column("version", Integer, nullable=False),
    Column("n", BigInteger, nullable=False),
    Column("schema", _json, nullable=False),
    Column("source", _json, nullable=False),
    Column("profile", _json, nullable=True),
    UniqueConstraint("dataset", "version"),
    info=chained("version"),
)
