"""Access: asking the API server who sends a request to this process, and whether they may."""
