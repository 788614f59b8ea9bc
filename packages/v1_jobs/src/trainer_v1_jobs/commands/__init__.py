"""The commands about v1 jobs, and what other commands ask about them; they join `trainer` by entry points."""
