"""The number of records."""
