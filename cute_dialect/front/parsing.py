"""Parsing Python, one thread at a time.

CPython 3.11 counts the depth of trees that it makes in one place for all threads, and gives up with a SystemError
where two threads make one at once.
"""

from __future__ import annotations

import ast
import threading
from typing import Any

__all__ = ["parsed"]

_ONE = threading.Lock()


def parsed(text: str, mode: str = "exec") -> Any:
    """Return the tree of a text, as ``ast.parse`` does.

    >>> parsed("1 + 1", mode="eval").body.op.__class__.__name__
    'Add'
    """
    with _ONE:
        return ast.parse(text, mode=mode)
