"""What the end-to-end tests are made of."""
