"""Operations on tensors: ``from cute_dialect import op``, then ``op.mm(a, b)``.

The public names are listed in the stub file of this package; each is imported at its first use.
"""

from __future__ import annotations

from cute_dialect.exports import exports

__getattr__, __dir__ = exports(__name__)
