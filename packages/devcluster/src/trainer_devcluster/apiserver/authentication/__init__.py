"""Authentication: who sends a request."""
