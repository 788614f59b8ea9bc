"""The versions of the tables. A version that was released does not change any more."""
