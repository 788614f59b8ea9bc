"""HTTP to an API server: the client over it, connections, credentials, retries."""
