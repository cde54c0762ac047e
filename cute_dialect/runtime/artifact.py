"""Compiled module: in memory as one object, on disk as a folder of files.

The folder holds::

    manifest.json            kernels, parameters, host programs (format 2), names and SHA-256 of the files below
    kernel.ptx, kernel.cubin machine code (``kernel.NAME.ptx`` if there are several ``gpu.module`` ops)
    ptxas.txt                registers, spills, warnings
    01-input.mlir …          the IR after each stage, if the stages were kept

A folder is written under a temporary name and then renamed, so readers never see an incomplete folder.  The files are
JSON and raw bytes, never pickles.  Folders may come from untrusted sources, so
:mod:`~cute_dialect.runtime.manifest_schema` checks each field.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple, cast

from cute_dialect.errors import CuteError
from cute_dialect.files import checked_path
from cute_dialect.runtime.manifest import FORMAT, Manifest

__all__ = [
    "MANIFEST",
    "Artifact",
    "ArtifactError",
    "CodeObject",
    "Stage",
    "artifact_files",
    "load_artifact",
    "read_artifact",
    "save_artifact",
]

MANIFEST = "manifest.json"
_LARGEST_MANIFEST = 64 << 20
"""Size limit of a manifest file, in bytes."""


class ArtifactError(CuteError):
    """The folder is not a compiled module, is damaged, or cannot be written."""


class Stage(NamedTuple):
    """The IR after one stage: ``name`` is the pass, ``text`` the module."""

    name: str
    text: str


class CodeObject(NamedTuple):
    """Machine code of one ``gpu.module``.

    ``cubin`` is ``None`` if ptxas was not available; the driver assembles the PTX.
    """

    module: str
    ptx: str
    cubin: bytes | None
    ptxas: dict[str, object] | None
    """ptxas report as data"""
    report: str
    """ptxas report as text"""


class Artifact(NamedTuple):
    manifest: Manifest
    code: tuple[CodeObject, ...]
    stages: tuple[Stage, ...] = ()

    @property
    def ptx(self) -> str:
        """PTX text of all ``gpu.module`` ops, concatenated."""
        return "\n".join(c.ptx for c in self.code)


def save_artifact(artifact: Artifact, folder: str | os.PathLike[str]) -> str:
    """Write ``artifact`` to ``folder``, replacing an older artifact there, and return the path.

    Raises :class:`ArtifactError` if the folder exists and holds anything else.
    """
    import shutil
    import tempfile

    target = os.path.abspath(checked_path("save", "folder", folder, ArtifactError))
    try:
        _check_replaceable(target)
        parent = os.path.dirname(target)
        os.makedirs(parent, exist_ok=True)
        fresh = tempfile.mkdtemp(prefix=f".{os.path.basename(target)}-", dir=parent)
    except OSError as e:
        raise ArtifactError(f"cannot write {target}: {e.strerror}; choose another folder") from e
    try:
        for name, data in artifact_files(artifact).items():
            with open(os.path.join(fresh, name), "wb") as f:
                f.write(data)
        os.chmod(fresh, 0o755)
        if os.path.isdir(target):
            old = tempfile.mkdtemp(prefix=f".{os.path.basename(target)}-old-", dir=parent)
            try:
                os.rename(target, os.path.join(old, "x"))
                try:
                    os.rename(fresh, target)
                except OSError:
                    os.rename(os.path.join(old, "x"), target)
                    raise
            finally:
                shutil.rmtree(old, ignore_errors=True)
        else:
            os.rename(fresh, target)
    except OSError as e:
        raise ArtifactError(
            f"cannot write {target}: {e.strerror}; make room or choose another folder; no partial folder is left"
        ) from e
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return target


def _check_replaceable(target: str) -> None:
    """Raise :class:`ArtifactError` unless ``target`` is absent, an empty folder, or holds only a compiled module."""
    if not os.path.lexists(target):
        return
    if not os.path.isdir(target):
        raise ArtifactError(f"{target} exists and is not a folder")
    there = set(os.listdir(target))
    if not there:
        return
    try:
        with open(os.path.join(target, MANIFEST), "rb") as f:
            document = json.loads(f.read(_LARGEST_MANIFEST))
        known = {MANIFEST, *document["files"]} if "kernels" in document else None
    except (OSError, ValueError, RecursionError, KeyError, TypeError):
        known = None
    if known is None:
        raise ArtifactError(f"{target} exists and is not a compiled module; it was not replaced: choose another folder")
    if there - known:
        others = ", ".join(sorted(there - known)[:3])
        raise ArtifactError(
            f"{target} also holds other files than the compiled module ({others}); it was not replaced: choose another "
            "folder"
        )


def artifact_files(artifact: Artifact) -> dict[str, bytes]:
    """Return the files of a compiled module by name, as :func:`read_artifact` reads them."""
    import hashlib

    out: dict[str, bytes] = {}
    code: list[dict[str, object]] = []
    for i, c in enumerate(artifact.code):
        alone = len(artifact.code) == 1
        # A symbol may have any length and contain any character, so unsafe names are replaced by a number.
        label = c.module if re.fullmatch(r"[A-Za-z0-9_$-]{1,100}", c.module) else str(i)
        stem = "kernel" if alone else f"kernel.{label}"
        entry: dict[str, object] = {"module": c.module, "ptx": f"{stem}.ptx", "cubin": None, "ptxas": c.ptxas}
        out[f"{stem}.ptx"] = c.ptx.encode()
        if c.cubin is not None:
            entry["cubin"] = f"{stem}.cubin"
            out[f"{stem}.cubin"] = c.cubin
        if c.report:
            entry["report"] = "ptxas.txt" if alone else f"ptxas.{label}.txt"
            out[str(entry["report"])] = c.report.encode()
        code.append(entry)
    stages = [f"{i:02d}-{s.name}.mlir" for i, s in enumerate(artifact.stages, 1)]
    out.update({name: stage.text.encode() for name, stage in zip(stages, artifact.stages)})
    files = {name: hashlib.sha256(data).hexdigest() for name, data in out.items()}
    document = {**artifact.manifest, "code": code, "stages": stages, "files": files}
    return {**out, MANIFEST: (json.dumps(document, indent=1) + "\n").encode()}


def load_artifact(folder: str | os.PathLike[str]) -> Artifact:
    """Load a folder that :func:`save_artifact` wrote and check every field.  Raises :class:`ArtifactError`."""
    base = os.fspath(folder)

    def get(name: str) -> bytes:
        try:
            return _read_file(os.path.join(base, name), _LARGEST_MANIFEST if name == MANIFEST else None)
        except OSError as e:
            if name == MANIFEST:
                raise ArtifactError(f"{base} is not a compiled module: cannot read {name} ({e.strerror})") from e
            raise ArtifactError(f"{base}: cannot read {name} ({e.strerror})") from e

    return read_artifact(base, get, check=True)


def _read_file(path: str, most: int | None) -> bytes:
    """Read a regular file; a pipe is refused, because opening it could block."""
    import stat

    opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(opened, "rb") as f:
        found = os.fstat(opened)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(0, "it is not a regular file")
        if most is not None and found.st_size > most:
            raise OSError(0, f"expected at most {most} bytes, got {found.st_size}")
        return f.read()


def read_artifact(base: str, get: Callable[[str], bytes], *, check: bool = False) -> Artifact:
    """Build a module from files that ``get`` returns by name.

    Args:
        base: path of the folder, for messages.
        get: returns the bytes of a file.
        check: check each field of the manifest and the hash of each file; set it for untrusted sources.

    Raises :class:`ArtifactError`.
    """
    import hashlib

    path = os.path.join(base, MANIFEST)
    try:
        found: object = json.loads(get(MANIFEST).decode(), object_pairs_hook=_unique_fields if check else None)
    except RecursionError:
        raise ArtifactError(f"{path} is damaged: it is nested too deeply") from None
    except ValueError as e:
        raise ArtifactError(f"{path} is damaged: {e}") from e
    if not isinstance(found, dict):
        raise ArtifactError(f"{path} is damaged: expected a JSON object, got {type(found).__name__}")
    document = cast("dict[str, object]", found)
    if document.get("format") != FORMAT:
        raise ArtifactError(
            f"{path} has format {document.get('format')!r}, this version reads format {FORMAT}: compile it again"
        )
    if check:
        from cute_dialect.runtime.manifest_schema import SchemaError, check_document  # late: start-up

        try:
            check_document(document)
        except SchemaError as e:
            raise ArtifactError(f"{path}: {e}") from None
    files = cast("Mapping[str, str]", document.pop("files"))

    def read(name: str) -> bytes:
        data = get(name)
        if check and hashlib.sha256(data).hexdigest() != files[name]:
            raise ArtifactError(f"{base}: {name} was modified after the compilation (its SHA-256 differs)")
        return data

    def text(name: str) -> str:
        try:
            return read(name).decode()
        except UnicodeDecodeError as e:
            raise ArtifactError(f"{base}: {name} is not UTF-8 text (byte {e.start})") from None

    code = tuple(
        CodeObject(
            module=str(entry["module"]),
            ptx=text(str(entry["ptx"])),
            cubin=read(str(entry["cubin"])) if entry["cubin"] is not None else None,
            ptxas=cast("dict[str, object] | None", entry["ptxas"]),
            report=text(str(entry["report"])) if "report" in entry else "",
        )
        for entry in cast("list[dict[str, object]]", document.pop("code"))
    )
    stages = tuple(
        Stage(name.removesuffix(".mlir").split("-", 1)[1], text(name))
        for name in cast("list[str]", document.pop("stages"))
    )
    return Artifact(cast(Manifest, document), code, stages)


def _unique_fields(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Build a JSON object.  Raises ValueError for a duplicate field."""
    out = dict(pairs)
    if len(out) != len(pairs):
        names = [name for name, _ in pairs]
        duplicate = next(n for n in names if names.count(n) > 1)
        raise ValueError(f"the field {duplicate!r} occurs twice in one object")
    return out
