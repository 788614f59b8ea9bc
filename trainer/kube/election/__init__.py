"""One leader among several processes, and no write without leadership."""
