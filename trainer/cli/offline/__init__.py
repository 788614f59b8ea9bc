"""Checking and rendering files without a cluster."""
