"""Distributed JAX."""
