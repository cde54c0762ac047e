"""Operations of several GPUs: ``op.distributed.all_reduce(x)``.

The stub ``__init__.pyi`` lists the public names.  Each one is imported on first use.
"""

from __future__ import annotations

from cute_dialect.exports import exports

__getattr__, __dir__ = exports(__name__)
