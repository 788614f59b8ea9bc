"""Servers on loopback that a test or a demo fetches from: ranges with faults, and a small Hub."""

<<<<<<<< HEAD:packages/initializers/src/trainer_initializers/testing/__init__.py
from packages.initializers.tests.servers.range_server import AnswerFault, RangeServer, ReceivedRequest
========
from packages.initializers.tests.servers.range_server import AnswerFault, RangeServer, ReceivedRequest
>>>>>>>> 851454cc (Keep the servers that initializers are tested with among the tests):packages/initializers/tests/servers/__init__.py

__all__ = ["AnswerFault", "RangeServer", "ReceivedRequest"]
