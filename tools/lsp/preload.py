"""Imports shared by all analyses, loaded once before worker processes are forked."""

from __future__ import annotations

import gc
from importlib import import_module

for name in (
    "lang",
    "lang.calls.compile",
    "tools.split_input",
    "tools.lsp.analysis",
    "tools.lsp.catalogue",
    "tools.lsp.pictures",
):
    import_module(f"cute_dialect.{name}")
import_module("cute_dialect.tools.lsp.workers").warm_up()
gc.freeze()
