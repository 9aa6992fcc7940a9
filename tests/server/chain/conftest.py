from support.databases.migrated import clock, database_url, engine

__all__ = ["clock", "database_url", "engine"]
