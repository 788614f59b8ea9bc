"""How pods get addresses and names: three ways, of which a probe at the start chooses the best that works here."""
