"""The memory that processes keep."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
import sys
from asyncio.sslproto import SSLProtocol

from trainer.kube.memory import SMALLEST_BUFFER, shrink_tls_buffer


async def test_a_stream_takes_less() -> None:
    """asyncio reads no more than the smallest buffer of a connection that was shrunk."""
    loop = asyncio.get_running_loop()
    context, waiter = ssl.create_default_context(), loop.create_future()
    protocol = SSLProtocol(loop, asyncio.Protocol(), context, waiter, server_hostname="a.example")
    transport = protocol._app_transport
    assert len(protocol.get_buffer(-1)) > SMALLEST_BUFFER
    shrink_tls_buffer(transport)
    assert len(protocol.get_buffer(-1)) == SMALLEST_BUFFER
    assert transport.get_read_buffer_limits() == (0, 1)
    transport.close()


THREADS = """
import re, sys, threading
from pathlib import Path
from trainer.kube.memory import limit_memory

def mapped():
    return int(re.search(r"VmSize:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])

if sys.argv[1:]:
    limit_memory()
threads = 4
barrier = threading.Barrier(threads + 1)

def allocate():
    kept = [bytes(2000) for _ in range(100)]
    barrier.wait()
    barrier.wait()
    return kept

before = mapped()
for _ in range(threads):
    threading.Thread(target=allocate).start()
barrier.wait()
print((mapped() - before) // threads)
barrier.wait()
"""
"""KiB of addresses that a thread takes, of which a heap has 64 MiB and a stack 8 MiB or what `ulimit -s` says."""


def test_threads_share_a_heap() -> None:
    """No thread takes addresses for a heap of its own."""
    one, many = (
        int(subprocess.run([sys.executable, "-c", THREADS, *more], check=True, capture_output=True, env={}).stdout)
        for more in (["limited"], [])
    )
    assert many - one >= 60 * 1024
