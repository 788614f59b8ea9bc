"""Callbacks of training frameworks that report progress and metrics: one module, and one file to copy, for each."""
