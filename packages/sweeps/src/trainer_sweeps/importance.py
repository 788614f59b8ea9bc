"""How much each parameter has to do with the value of the objective."""
