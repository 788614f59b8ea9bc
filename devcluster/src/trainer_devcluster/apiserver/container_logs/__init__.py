"""Logs of containers on disk."""
