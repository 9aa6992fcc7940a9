"""Residuals of a released fit, by bins of its fitted values."""
