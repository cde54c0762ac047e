"""Operations on tensors: ``from cute_dialect import op``, then ``op.mm(a, b)``.

The public names stand in the stub beside this file; each is imported when it is first used.
"""

from __future__ import annotations

from cute_dialect.exports import exports

__getattr__, __dir__ = exports(__name__)
