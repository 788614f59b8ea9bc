"""Events: a controller's messages for users about an object."""
