"""What pages show of a sweep: its search, its trials, and what its parameters have to do with their values."""
