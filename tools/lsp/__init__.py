"""The parts of ``cute-lsp``: ``server`` has the state, ``features`` answers, ``workers`` computes in processes.

``views`` counts as the client does; ``mlir_features`` and ``python_features`` know what is at a place in a text;
``mlir_text`` finds names in text that need not parse.  In the workers, ``mlir_analysis`` and ``python_analysis`` (with
``traced_values``) analyse a text, ``catalogue`` lists and documents all that can be named, ``pictures`` draws; they
give the ``records``.  ``fixes`` reads "did you mean" in messages.
"""
