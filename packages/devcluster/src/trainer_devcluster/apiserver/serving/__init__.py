"""The running server: dispatch, and what it starts with."""
