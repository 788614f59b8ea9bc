"""What `hack.generate_chart` makes of config/ and of the values."""
