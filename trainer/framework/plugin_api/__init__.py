"""What a plugin is written with: extension points, RuntimeInfo, components, errors and warnings, the test reader."""
