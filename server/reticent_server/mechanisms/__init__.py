"""The release primitives: the only doors out of the vault, each with its cost and its proof."""
