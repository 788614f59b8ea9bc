"""Admission webhooks: reviews, the TLS server that answers them, and the certificates that it shows."""
