"""Tests on every Python that is supported, and with the oldest and the newest versions of what we depend on."""
