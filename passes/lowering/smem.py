"""``cute-to-base`` of shared memory."""

from __future__ import annotations

from collections.abc import Mapping

from cute_dialect.passes.lowering.walk import Handler

HANDLERS: Mapping[str, Handler] = {}
