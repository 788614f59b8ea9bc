"""HTTP servers of a process: what connections may cost, TLS, and the certificates that are shown."""
