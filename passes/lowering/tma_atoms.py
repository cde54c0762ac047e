"""``convert-cute-algo-to-arch`` of TMA copies."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xdsl.ir import Operation

HANDLERS: Mapping[str, Callable[[Operation], None]] = {}
"""Op name -> how it is lowered in place."""
