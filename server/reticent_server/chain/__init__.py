"""The hash chain: one line of entries for every charge, every budget and every administrative act."""
