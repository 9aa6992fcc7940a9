"""Quantiles of a column."""
