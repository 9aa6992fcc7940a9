"""The mean of a column."""
