"""What is shown of a TrainJob, by the command, the page and the history alike."""
