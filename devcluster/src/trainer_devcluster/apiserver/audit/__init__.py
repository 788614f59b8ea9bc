"""The audit log: who has asked the API server for what, and what came of it."""
