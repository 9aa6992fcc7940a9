"""The median of a column."""
