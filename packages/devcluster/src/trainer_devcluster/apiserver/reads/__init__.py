"""Get, list, watch and logs."""
