"""The Pipeline Framework (KEP-2170): extension points, RuntimeInfo, registry, the phases, and the deployer."""
