"""Commands and files in the containers of a TrainJob."""
