"""What pages show of trainings that have ended or are gone."""
