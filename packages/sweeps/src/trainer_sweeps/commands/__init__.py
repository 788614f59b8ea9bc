"""Commands that join `trainer` by entry points."""
