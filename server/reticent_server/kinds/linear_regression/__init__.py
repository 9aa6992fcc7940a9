"""Huber–Mallows linear regression."""
