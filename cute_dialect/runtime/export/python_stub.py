"""A module of Python with one function: the exported kernel, with its parameters' names and types."""

from __future__ import annotations

import keyword
import re

from cute_dialect.runtime.launch_plan import Target
from cute_dialect.runtime.manifest import Manifest
from cute_dialect.runtime.signature import Param

__all__ = ["python_stub"]

_STUB = '''"""{name}: @{target} for {chip}, made by cute-dialect; its code is in the folder {folder}.

    import {name}
    {name}.launch({example})
"""

from __future__ import annotations

from pathlib import Path
from typing import Any{protocol_import}

from cute_dialect.runtime import load

__all__ = ["kernel", "launch"]
{protocol}

kernel = load(Path(__file__).with_name("{folder}")).kernel("{target}")
"""The kernel with all that it can: ``bind``, ``plans`` …"""


def launch({parameters}{star}stream: Any = None, **options: Any) -> None:
    """Launch on a stream, by default the arrays' library's current one.

{docs}
    ``options``: ``device="cpu"`` and so on, as calls of kernels take them.  Raises ``LaunchError`` for arguments that
    contradict these types.
    """
    kernel({passed}stream=stream, **options)
'''


_PROTOCOL = '''

class Tensor(Protocol):
    """An array of torch, cupy, numpy, or of anything else that speaks DLPack."""

    def __dlpack__(self, *args: Any, **options: Any) -> Any: ...
    def __dlpack_device__(self) -> tuple[Any, Any]: ...
'''


def python_stub(name: str, target: Target, manifest: Manifest, folder: str) -> bytes:
    """Return the text of a module ``NAME.py`` that launches the kernel whose artifact lies in ``folder`` beside it."""
    names: list[str] = []
    for label in target.names:
        made = re.sub(r"\W", "_", label) or "_"
        made = (
            f"{made}_"
            if keyword.iskeyword(made) or made in ("stream", "options", "kernel", "launch", "load", "Tensor")
            else made
        )
        made = f"_{made}" if made[0].isdigit() else made
        while made in names:
            made += "_"
        names.append(made)
    docs = [f"    ``{n}``: ``{p['type']}``" for n, p in zip(names, target.params)]
    annotations = [_annotation(p) for p in target.params]
    tensors = "Tensor" in annotations
    return _STUB.format(
        protocol_import=", Protocol" if tensors else "",
        protocol=_PROTOCOL if tensors else "",
        name=name,
        target=target.name,
        chip=manifest["chip"],
        folder=folder,
        example=", ".join(names),
        parameters="".join([f"{n}: {a}, " for n, a in zip(names, annotations)]),
        star="*, ",
        docs="\n".join(docs),
        passed="".join([f"{n}, " for n in names]),
    ).encode()


def _annotation(param: Param) -> str:
    match param["kind"]:
        case "scalar":
            element = param.get("element", "i32")
            return "bool" if element == "i1" else "int" if element[0] == "i" else "float"
        case "tuple":
            return "tuple[Any, ...] | int"
        case "layout":
            return "tuple[Any, Any]"
        case "memref":
            return "Tensor"
        case _:
            return "Any"
