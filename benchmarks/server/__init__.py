"""A stand-in for the API server that serves canned objects faster than any client can take them."""
