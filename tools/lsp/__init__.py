"""The components of ``cute-lsp``.

``server`` holds the state, ``features`` handles requests, and ``workers`` computes in other processes.  ``documents``
converts positions of the client.  ``mlir_features`` and ``python_features`` look up the subject at a position;
``mlir_text`` finds names in text that need not parse.  In the workers, ``mlir_analysis`` and ``python_analysis`` (with
``traced_values``) analyse a text, ``catalogue`` lists and documents all names, and ``pictures`` draws layouts.
``analysis_results`` defines their results, and parses "did you mean" in messages.  ``preload`` imports what workers
share.
"""
