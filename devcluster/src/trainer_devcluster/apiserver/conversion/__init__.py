"""Conversion: objects in the versions that clients ask for, and in the one in which they are stored."""
