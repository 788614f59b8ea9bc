"""Servers on loopback that a test or a demo fetches from: ranges with faults, and a small Hub."""

from packages.initializers.tests.servers.range_server import AnswerFault, RangeServer, ReceivedRequest

__all__ = ["AnswerFault", "RangeServer", "ReceivedRequest"]
