"""What lines of a log say: as a terminal shows them, and what those of ordinary programs tell of progress."""
