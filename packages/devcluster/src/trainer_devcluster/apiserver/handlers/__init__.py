"""Request handlers: the HTTP side of each verb."""
