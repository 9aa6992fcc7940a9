"""Accounts, reservations, and the hash-chained entries that every answer is charged to."""
