"""Reticent: a curator's query server for robust, differentially private statistics."""
