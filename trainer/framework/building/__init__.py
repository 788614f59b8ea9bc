"""PreExecution and Build (KEP-2170): from a runtime and a TrainJob to RuntimeInfo, and what builders share."""
