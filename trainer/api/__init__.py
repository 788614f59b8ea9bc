"""The nouns: models of the objects that we own or build, and the CustomResourceDefinitions generated from them."""
