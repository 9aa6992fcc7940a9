"""Huber's location by the exponential mechanism."""
