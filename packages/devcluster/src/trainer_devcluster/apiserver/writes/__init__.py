"""From a write request to a stored object."""
