"""Operations on tensors: ``from cute_dialect import op``, then ``op.mm(a, b)``.

The public names are listed in the stub file of this package; each is imported at its first use.
"""

from __future__ import annotations

from cute_dialect.exports import exports


def _reporting(name: str, value: object) -> object:
    """Let a public function report missing arguments."""
    from cute_dialect.op.keywords import report_missing

    return report_missing(name, value)


__getattr__, __dir__ = exports(__name__, _reporting)
