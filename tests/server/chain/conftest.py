# SPDX-License-Identifier: Apache-2.0
from support.databases.migrated import clock, database_url, engine

__all__ = ["clock", "database_url", "engine"]
