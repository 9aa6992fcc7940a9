"""The sum of a column."""
