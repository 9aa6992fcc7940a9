"""Executes plans by block map-reduce; the only reader of the vault in a serving process."""
