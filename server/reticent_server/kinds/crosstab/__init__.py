"""Counts by the values of several columns."""
