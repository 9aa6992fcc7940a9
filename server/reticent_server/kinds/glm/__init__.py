"""Robust generalised linear models."""
