"""The interquartile range of a column."""
