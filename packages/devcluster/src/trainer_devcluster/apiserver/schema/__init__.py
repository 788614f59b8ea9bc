"""Structural schemas of custom resources: pruning, defaults and validation."""
