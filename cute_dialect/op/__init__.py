"""Operations on tensors: ``from cute_dialect import op``, then ``op.mm(a, b)``.

The public names are listed in the stub file of this package; each is imported at its first use.
"""

from __future__ import annotations

import sys

from cute_dialect.exports import exports


def _reporting(name: str, value: object) -> object:
    """Let a public function report missing arguments."""
    from cute_dialect.op.keywords import report_missing

    _allow_loading()
    return report_missing(name, value)


def _allow_loading() -> None:
    """Let ``torch.load(weights_only=True)`` read packed and sparse weights, if torch is imported."""
    if sys.modules.get("torch") is not None:
        from cute_dialect.op.problems.compressed_weights import allow_loading  # late: start-up

        allow_loading()


_allow_loading()
__getattr__, __dir__ = exports(__name__, _reporting)
