"""Logs of containers, read on across broken connections."""
