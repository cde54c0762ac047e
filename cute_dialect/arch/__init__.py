"""Tables of NVIDIA GPU instructions: copy and MMA atoms, shared-memory and tensor-map descriptors.

``ATOMS`` maps names to atoms, which are built on first use.  ``__init__.pyi`` lists the public names.  The tables are
in the modules ``copies``, ``mma_sync``, ``sm90`` and ``sparse_mma``.  ``descriptors`` describes the shared
memory that WGMMA reads, and ``tma`` the tensor maps. ``python -m cute_dialect.arch`` lists the table.

>>> from cute_dialect.arch import ATOMS
>>> ATOMS["SM75_U32x4_LDSM_N"].dst
Layout("(32,(32,4)):(32,(1,1024))")
"""

from __future__ import annotations

from cute_dialect.exports import exports

__getattr__, __dir__ = exports(__name__)
