"""Servers on loopback that a test or a demo fetches from: ranges with faults, and a small Hub."""

from trainer.initializers.testing.range_server import Fault, RangeServer, Request

__all__ = ["Fault", "RangeServer", "Request"]
