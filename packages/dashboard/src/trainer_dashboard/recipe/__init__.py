"""What a training runs: its command, its parameters, and texts without their secrets."""
