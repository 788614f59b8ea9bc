"""From a CustomResourceDefinition to resources that are served."""
