"""Files of tables, a GPU each."""

from __future__ import annotations

import re

from cute_dialect.files import replace_file

__all__ = ["gpu_file_name", "replace_file"]


def gpu_file_name(gpu: str) -> str:
    """Return the name of a table of a GPU.

    >>> gpu_file_name("NVIDIA H200")
    'nvidia-h200.json'
    """
    return re.sub(r"[^a-z0-9]+", "-", gpu.lower()).strip("-") + ".json"
