"""The components of ``cute-lsp``.

``server`` holds the state and the documents, ``features`` handles requests, and ``workers`` computes in other
processes.  ``features`` (Python) and ``mlir_features`` look up the subject at a position; ``mlir_text`` finds names in
text that need not parse.  In the workers, ``analysis`` analyses a text, ``catalogue`` lists and documents all names,
and ``pictures`` draws layouts.  ``analysis_results`` defines their results, and parses "did you mean" in messages.
``preload`` imports what workers share.
"""
