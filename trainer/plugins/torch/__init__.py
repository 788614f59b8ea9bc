"""Distributed PyTorch."""
