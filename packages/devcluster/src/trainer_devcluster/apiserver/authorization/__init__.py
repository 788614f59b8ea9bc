"""Authorization: what a user may do."""
