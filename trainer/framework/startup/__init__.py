"""Startup (KEP-2170): which plugins there are, how they are configured, made and checked."""
