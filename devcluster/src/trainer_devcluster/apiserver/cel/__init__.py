"""CEL, the Common Expression Language, as the API server speaks it.

Sources: the CEL language definition (github.com/google/cel-spec) and the Kubernetes documentation, "Common Expression
Language in Kubernetes". Expressions are parsed, checked against declared types and compiled to Python closures; texts
of errors are those of the API server. What an expression may cost is estimated; nobody counts while it is evaluated.
"""
