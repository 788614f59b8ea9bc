"""The plugin API: extension points, RuntimeInfo, components, errors and warnings, and a reader for tests."""
