"""Processes that commands start, in the background or as children."""
