"""The kind, its rules, and its CustomResourceDefinition."""
