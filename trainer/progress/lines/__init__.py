"""Lines of a log: what a terminal shows of them, and progress and metrics in those of ordinary programs."""
