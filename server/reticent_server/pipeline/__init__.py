"""The way of a request: authorise → plan → reserve → execute → settle."""
