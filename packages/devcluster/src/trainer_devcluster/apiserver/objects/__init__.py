"""What all objects have: names, metadata, and the types of their fields."""
