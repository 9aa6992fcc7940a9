"""The projection-depth median of several columns."""
