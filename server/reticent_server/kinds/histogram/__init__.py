"""Counts by bin or level."""
