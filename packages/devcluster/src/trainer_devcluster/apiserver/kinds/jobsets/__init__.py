"""JobSets, as their webhooks treat them."""
