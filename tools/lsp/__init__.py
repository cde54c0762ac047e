"""The parts of ``cute-lsp``: ``server`` and ``features`` speak the protocol, ``workers`` computes in processes.

``mlir_text`` finds names in text that need not parse; ``mlir_analysis`` and ``python_analysis`` run in the workers and
give the ``records``; ``fixes`` reads "did you mean" in messages.
"""
