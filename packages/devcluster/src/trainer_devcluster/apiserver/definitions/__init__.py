"""Which resources are served, and how a path leads to one."""
