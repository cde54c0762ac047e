"""Export of a kernel to files for other programs.

kernel.export("out", name="gemm")                          # gemm.ptx gemm.cubin gemm.h gemm.c gemm.py
kernel.export("out", formats=("c",), name="gemm")
"""

from __future__ import annotations

import keyword
import os
import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import cast

from cute_dialect.files import checked_path
from cute_dialect.runtime.artifact import Artifact, artifact_files
from cute_dialect.runtime.export.c_files import c_files
from cute_dialect.runtime.export.c_text import ExportError
from cute_dialect.runtime.export.python_stub import python_stub
from cute_dialect.runtime.launch_plan import Target

__all__ = ["FORMATS", "export"]

FORMATS = ("ptx", "cubin", "mlir", "c", "py")
"""Export formats."""

MOST_CHARACTERS = 128
"""Longest name: file systems allow 255 bytes, and temporary names and suffixes need some of them."""


def export(
    artifact: Artifact, target: Target, folder: str | os.PathLike[str], formats: Sequence[str], name: str | None = None
) -> dict[str, Path]:
    """Write a kernel to ``folder`` and return the files by name.

    - ``NAME.ptx``, ``NAME.cubin``: machine code; further modules get a number after the name.
    - ``NAME.mlir``: the module before the first pass.
    - ``NAME.h``, ``NAME.c``: header and C source.
    - ``NAME.py`` with the folder ``NAME_kernel``: Python module and artifact.

    Each file is replaced atomically, after all of them have been generated.  Other files in the folder are left
    alone.

    Raises :class:`ExportError` for an unknown format, an invalid C name, or a format that the kernel does not have.
    """
    own = re.sub(r"\W", "_", target.name, flags=re.ASCII) if name is None else name
    wanted = _formats(formats)
    if not isinstance(own, str) or not re.fullmatch(r"[A-Za-z_]\w*", own, re.ASCII):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ExportError(f"export: the name must consist of letters, digits and _, got {own!r}; pass name=")
    if len(own) > MOST_CHARACTERS:
        raise ExportError(
            f"export: the name has {len(own)} characters, a file name has at most {MOST_CHARACTERS}; "
            "give a shorter name="
        )
    if "py" in wanted and keyword.iskeyword(own):
        raise ExportError(f"export: Python cannot import a module whose name is the keyword {own!r}; pass name=")
    files: dict[str, bytes] = {}
    for form in wanted:
        files.update(_files(artifact, target, form, own))
    return _write(Path(checked_path("export", "folder", folder, ExportError)), files)


def _formats(given: object) -> list[str]:
    """Return the requested formats without duplicates.  Raises :class:`ExportError`."""
    formats = [given]
    if isinstance(given, Iterable) and not isinstance(given, str):
        formats = list(cast("Iterable[object]", given))
    wrong = [form for form in formats if form not in FORMATS]
    if not formats or wrong:
        near = get_close_matches(str(wrong[0]).lower(), FORMATS, 1) if wrong else ()
        hint = f"; did you mean {near[0]!r}?" if near else ""
        got = repr(wrong[0]) if wrong else "none"
        raise ExportError(f"export: formats must be one or more of {', '.join(FORMATS)}, got {got}{hint}")
    return list(dict.fromkeys(map(str, formats)))


def _files(artifact: Artifact, target: Target, form: str, name: str) -> dict[str, bytes]:
    modules = {k["module"] for k in target.kernels}
    code = [c for c in artifact.code if c.module in modules]
    if form == "c":
        return c_files(name, target, artifact.manifest, code)
    if form == "py":
        own = {f"{name}_kernel/{file}": data for file, data in artifact_files(artifact).items()}
        return {f"{name}.py": python_stub(name, target, artifact.manifest, f"{name}_kernel"), **own}
    if form == "mlir":
        if not artifact.stages:
            raise ExportError(f"export: @{target.name} was compiled without its stages; compile with keep_stages=True")
        return {f"{name}.mlir": artifact.stages[0].text.encode()}
    made: dict[str, bytes] = {}
    for i, c in enumerate(code):
        data = c.ptx.encode() if form == "ptx" else c.cubin
        if data is None:
            raise ExportError(
                f"export: @{target.name} has no cubin, because ptxas was not available (pip install nvidia-cuda-nvcc); "
                "leave out 'cubin'"
            )
        made[f"{name}{i or ''}.{form}"] = data
    if not made:
        raise ExportError(f"export: @{target.name} has no machine code: compile it with emit='auto'")
    return made


def _write(folder: Path, files: dict[str, bytes]) -> dict[str, Path]:
    """Write all files under temporary names, then rename them."""
    fresh: list[tuple[Path, Path]] = []
    try:
        for name, data in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary = path.with_name(f".{path.name}.{os.getpid()}")
            fresh.append((temporary, path))
            temporary.write_bytes(data)
        for temporary, path in fresh:
            temporary.replace(path)
    except OSError as e:
        raise ExportError(f"export: cannot write {e.filename or folder}: {e.strerror}; choose another folder") from e
    finally:
        for temporary, _ in fresh:
            temporary.unlink(missing_ok=True)
    return {name: folder / name for name in files}
