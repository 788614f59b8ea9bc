"""Measuring admission: the webhook server in a process of its own, and its clients."""
