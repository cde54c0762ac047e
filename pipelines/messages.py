"""Messages between us and a process that works for us: :mod:`marshal` data, each after its length in 8 bytes.

They go through pipes that only the two hold, by descriptor.

>>> source, sink = os.pipe()
>>> send(sink, ("ok", 3)); os.close(sink)
>>> receive(source), receive(source)
(('ok', 3), None)
>>> os.close(source)
"""

from __future__ import annotations

import marshal
import os
from typing import Any

__all__ = ["receive", "send"]


def send(pipe: int, data: Any) -> None:
    """Write a message.  Raises BrokenPipeError where nobody reads."""
    payload = marshal.dumps(data)
    rest = memoryview(len(payload).to_bytes(8, "little") + payload)
    while rest:
        rest = rest[os.write(pipe, rest) :]


def receive(pipe: int) -> Any:
    """The next message; None when the other side is gone."""
    head = _read(pipe, 8)
    payload = _read(pipe, int.from_bytes(head, "little")) if head is not None else None
    return marshal.loads(payload) if payload is not None else None


def _read(pipe: int, size: int) -> bytes | None:
    parts: list[bytes] = []
    while size:
        part = os.read(pipe, min(size, 1 << 20))
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
