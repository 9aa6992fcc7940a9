from support_databases import clock, database_url, engine

__all__ = ["clock", "database_url", "engine"]
