"""Generators of documents: ``python -m cute_dialect.tools.docs.NAME``, most with ``--check``.

``dialect``, ``reference``, ``interpreter_values`` and ``performance`` write pages of ``docs``.  ``grammar`` writes the
grammars of editors, ``examples`` the printed kernels of ``test/examples``, and ``irdl`` the dialect in IRDL.  ``site``
builds the documentation site.  ``public_names`` knows the public names, and ``generated`` writes or checks files.
"""
