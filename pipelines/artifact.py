"""A compiled module as one object, and as a folder.

The folder holds what a person wants to read and what the launcher needs::

    manifest.json            kernels, parameters, host programs (format 1), names and SHA-256 of the files below
    kernel.ptx, kernel.cubin machine code (``kernel.NAME.ptx`` when there are several ``gpu.module`` ops)
    ptxas.txt                registers, spills, warnings
    01-input.mlir …          the IR after each stage, if the stages were kept

A folder is written under a temporary name and renamed, so a reader never sees half of one.  No pickle: JSON and bytes.
"""

from __future__ import annotations

import json
import os
from typing import NamedTuple, cast

from cute_dialect.pipelines.manifest import FORMAT, Manifest

__all__ = ["Artifact", "ArtifactError", "CodeObject", "Stage", "load_artifact", "save_artifact"]


class ArtifactError(Exception):
    """A folder that is not a compiled module, is damaged, or cannot be written."""


class Stage(NamedTuple):
    """The IR after one stage: ``name`` is the pass, ``text`` the module."""

    name: str
    text: str


class CodeObject(NamedTuple):
    """Machine code of one ``gpu.module``.  ``cubin`` is ``None`` when no ptxas was there: the driver assembles."""

    module: str
    ptx: str
    cubin: bytes | None
    ptxas: dict[str, object] | None
    """the report of ptxas as data"""
    report: str
    """the same for people"""


class Artifact(NamedTuple):
    """A compiled module."""

    manifest: Manifest
    code: tuple[CodeObject, ...]
    stages: tuple[Stage, ...] = ()

    @property
    def ptx(self) -> str:
        """The PTX; of a module with several ``gpu.module`` ops, all of it one after the other."""
        return "\n".join(c.ptx for c in self.code)


def save_artifact(artifact: Artifact, folder: str | os.PathLike[str]) -> str:
    """Write ``artifact`` to ``folder`` (replaced if it holds one already) and give its path.

    Raises :class:`ArtifactError` when the folder exists and is something else.
    """
    import shutil
    import tempfile

    target = os.path.abspath(str(os.fspath(folder)))
    if os.path.isdir(target) and os.listdir(target) and not os.path.exists(os.path.join(target, "manifest.json")):
        raise ArtifactError(f"{target} exists and holds no compiled module; it is left alone: choose another folder")
    if os.path.exists(target) and not os.path.isdir(target):
        raise ArtifactError(f"{target} exists and is not a folder")
    parent = os.path.dirname(target)
    try:
        os.makedirs(parent, exist_ok=True)
        fresh = tempfile.mkdtemp(prefix=f".{os.path.basename(target)}-", dir=parent)
    except OSError as e:
        raise ArtifactError(f"cannot write to {parent}: {e.strerror}") from e
    try:
        _write(artifact, fresh)
        os.chmod(fresh, 0o755)
        if os.path.isdir(target):
            old = tempfile.mkdtemp(prefix=f".{os.path.basename(target)}-old-", dir=parent)
            os.rename(target, os.path.join(old, "x"))
            os.rename(fresh, target)
            shutil.rmtree(old, ignore_errors=True)
        else:
            os.rename(fresh, target)
    except OSError as e:
        raise ArtifactError(f"cannot write {target}: {e.strerror}") from e
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return target


def _write(artifact: Artifact, folder: str) -> None:
    import hashlib

    files: dict[str, str] = {}

    def put(name: str, data: bytes) -> None:
        with open(os.path.join(folder, name), "wb") as f:
            f.write(data)
        files[name] = hashlib.sha256(data).hexdigest()

    code: list[dict[str, object]] = []
    for c in artifact.code:
        stem = "kernel" if len(artifact.code) == 1 else f"kernel.{c.module}"
        entry: dict[str, object] = {"module": c.module, "ptx": f"{stem}.ptx", "cubin": None, "ptxas": c.ptxas}
        put(f"{stem}.ptx", c.ptx.encode())
        if c.cubin is not None:
            entry["cubin"] = f"{stem}.cubin"
            put(f"{stem}.cubin", c.cubin)
        if c.report:
            put("ptxas.txt" if len(artifact.code) == 1 else f"ptxas.{c.module}.txt", c.report.encode())
        code.append(entry)
    stages = [f"{i:02d}-{s.name}.mlir" for i, s in enumerate(artifact.stages, 1)]
    for name, stage in zip(stages, artifact.stages):
        put(name, stage.text.encode())
    document = {**artifact.manifest, "code": code, "stages": stages, "files": files}
    with open(os.path.join(folder, "manifest.json"), "w", encoding="utf-8") as f:
        json.dump(document, f, indent=1)
        f.write("\n")


def load_artifact(folder: str | os.PathLike[str]) -> Artifact:
    """Read what :func:`save_artifact` wrote.  Raises :class:`ArtifactError`."""
    import hashlib

    base = os.fspath(folder)
    path = os.path.join(base, "manifest.json")
    try:
        with open(path, encoding="utf-8") as f:
            document = cast("dict[str, object]", json.load(f))
    except OSError as e:
        raise ArtifactError(f"{base} is no compiled module: cannot read manifest.json ({e.strerror})") from e
    except ValueError as e:
        raise ArtifactError(f"{path} is damaged: {e}") from e
    if document.get("format") != FORMAT:
        raise ArtifactError(
            f"{path} has format {document.get('format')!r}, this version reads format {FORMAT}: compile it again"
        )

    files = cast("dict[str, str]", document.pop("files", {}))

    def get(name: str) -> bytes:
        if os.path.basename(name) != name or name not in files:
            raise ArtifactError(f"{path} names a file it does not list: {name!r}")
        try:
            with open(os.path.join(base, name), "rb") as f:
                data = f.read()
        except OSError as e:
            raise ArtifactError(f"{base}: cannot read {name} ({e.strerror})") from e
        if hashlib.sha256(data).hexdigest() != files[name]:
            raise ArtifactError(f"{base}: {name} is not the file that was compiled (its SHA-256 differs)")
        return data

    code: list[CodeObject] = []
    for entry in cast("list[dict[str, object]]", document.pop("code")):
        report = f"ptxas.{entry['module']}.txt" if f"ptxas.{entry['module']}.txt" in files else "ptxas.txt"
        code.append(
            CodeObject(
                module=str(entry["module"]),
                ptx=get(str(entry["ptx"])).decode(),
                cubin=get(str(entry["cubin"])) if entry["cubin"] is not None else None,
                ptxas=cast("dict[str, object] | None", entry["ptxas"]),
                report=get(report).decode() if report in files else "",
            )
        )
    stages = tuple(
        Stage(name.removesuffix(".mlir").split("-", 1)[1], get(name).decode())
        for name in cast("list[str]", document.pop("stages"))
    )
    return Artifact(cast(Manifest, document), tuple(code), stages)
