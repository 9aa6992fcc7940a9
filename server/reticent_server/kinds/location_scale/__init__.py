"""Location and scale of a column by Huber's Proposal 2."""
