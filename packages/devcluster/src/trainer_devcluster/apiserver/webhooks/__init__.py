"""Webhooks: where those of the cluster are, whom to trust there, and how to call them."""
