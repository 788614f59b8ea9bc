"""What travels: request bodies, parameters, negotiation, Status answers."""
