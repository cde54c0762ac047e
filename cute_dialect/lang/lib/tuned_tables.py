"""The results of autotuning functions, one file per GPU: ``functions/nvidia-h200.json`` in the user's folder.

A file looks like this::

    {"format": 1, "gpu": "NVIDIA H200",
     "functions": {"mymodule.row_sum": {"x=f32[128x4096]": {"chosen": {"threads": "256"}, "microseconds": 4.5}}}}

Values are stored as their ``repr`` and looked up among the candidates of the function.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from cute_dialect.files import gpu_file_name, replace_file
from cute_dialect.runtime.settings import user_folder

_FORMAT = 1
Candidate = Mapping[str, Any]
"""Values of the autotuned parameters."""
_Entries = dict[str, dict[str, Any]]


def path_of(gpu: str) -> Path:
    """Return the path of the user's file for a GPU; ``gpu`` is its name as the driver reports it."""
    return Path(user_folder("CUTE_CONFIG_DIR", "XDG_CONFIG_HOME", ".config")) / "functions" / gpu_file_name(gpu)


def read(gpu: str) -> dict[str, _Entries]:
    """Return the entries of a GPU's file, by function and key.

    The result is empty if the file is missing, damaged or of another format; functions are then measured again.
    """
    try:
        found = json.loads(path_of(gpu).read_text(encoding="utf-8"))
        functions = cast("dict[str, _Entries]", found["functions"]) if found["format"] == _FORMAT else {}
        kept = {
            name: {key: e for key, e in entries.items() if isinstance(e["chosen"], dict)}
            for name, entries in functions.items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
    return kept


def find(entries: Mapping[str, Mapping[str, Any]], key: str, candidates: Sequence[Candidate]) -> Candidate | None:
    """Return the candidate that a function's entries record for a key, or None if there is no such entry or candidate.

    >>> find({"n=8": {"chosen": {"threads": "64"}}}, "n=8", [{"threads": 32}, {"threads": 64}])
    {'threads': 64}
    """
    entry = entries.get(key)
    wanted = entry["chosen"] if entry is not None else None
    return next((c for c in candidates if {n: repr(v) for n, v in c.items()} == wanted), None)


def save(gpu: str, function: str, key: str, chosen: Candidate, microseconds: float) -> Path:
    """Add an entry to the user's file, which is replaced atomically. Raises OSError."""
    functions = read(gpu)
    entry = {"chosen": {n: repr(v) for n, v in chosen.items()}, "microseconds": round(microseconds, 2)}
    functions.setdefault(function, {})[key] = entry
    document = {"format": _FORMAT, "gpu": gpu, "functions": dict(sorted(functions.items()))}
    path = path_of(gpu)
    replace_file(path, f"{json.dumps(document, indent=1)}\n".encode())
    return path
