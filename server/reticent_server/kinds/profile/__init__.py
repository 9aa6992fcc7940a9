"""The profile of a data set, which a curator publishes."""
