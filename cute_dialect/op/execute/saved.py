"""Saved plans: a folder with a plan and its compiled kernels, which run without the compiler.

    plan.run(a, b, c, d)                                 # the kernels of calls that were run are saved
    plan.save("folder")
    op.load("folder").run(a, b, c, d)                    # an equal plan with the kernels of the folder

Running needs the driver and NumPy or torch.  The folder has ``plan.json`` and a folder for each kernel, as written by
``CompiledModule.save``:

    {"format": 4, "plan": "Gemm", "settings": {…}, "choices": {PROBLEM: {…}}, "kernels": [NAME, …]}

``settings`` are the arguments of the plan.  ``choices`` are the choices for each problem, because another machine
would choose differently.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

from cute_dialect.files import checked_path, replace_file
from cute_dialect.op.errors import ArgumentError, OpError, UnsupportedError
from cute_dialect.op.execute.kernel_cache import Libraries
from cute_dialect.op.keywords import checks_keywords
from cute_dialect.runtime import load as load_module

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.plans.base import Recorded
    from cute_dialect.runtime.launch import CompiledModule


# ---------------------------------------------------------------------------------------------------------------- texts


STAGES = {
    "cute": "input", "expanded": "cute-expand-ops", "arch": "convert-cute-algo-to-arch", "base": "cute-to-base",
    "llvm": "one-shot-convert-to-llvm",
}  # fmt: skip
"""Names of compilation stages -> the pass after which the text is taken."""


class Source(Protocol):
    """A kernel with a unique ``name``; ``chip`` is its target, "" for the default."""

    @property
    def name(self) -> str:
        """Name of the kernel."""
        ...

    @property
    def chip(self) -> str:
        """Target of the kernel."""
        ...

    def text(self) -> str:
        """Return the source text of the kernel."""
        ...

    def compiled(self, *, cpu: bool = False) -> CompiledModule:
        """Return the kernel compiled for the GPU or for the interpreter."""
        ...


def ir_of(source: Source, stage: str) -> str:
    """Return the text of a kernel after a stage of :data:`STAGES`.  Raises UnsupportedError."""
    if stage not in STAGES:
        raise UnsupportedError(f"ir: stage {stage!r} is unknown; use one of {', '.join(STAGES)}")
    if stage == "cute":
        return source.text()
    from cute_dialect.pipelines import compile  # late: start-up

    module = compile(
        source.text(), filename=f"{source.name}.mlir", chip=source.chip or None, keep_stages=True,
        emit="base" if stage != "llvm" else "ptx",
    )  # fmt: skip
    return next(s.text for s in module.artifact.stages if s.name == STAGES[stage])


def whole(source: Source) -> CompiledModule:
    """Return a kernel compiled for the GPU together with the IR for the interpreter, to be saved."""
    from cute_dialect.pipelines import compile  # late: start-up
    from cute_dialect.runtime.launch import CompiledModule

    found = compile(source.text(), filename=f"{source.name}.mlir", chip=source.chip or None, keep_stages=True).artifact
    stages = tuple([s for s in found.stages if s.name == STAGES["base"]])
    return CompiledModule(found._replace(stages=stages))


# -------------------------------------------------------------------------------------------------------- saved kernels


FORMAT = 4
_FILE = "plan.json"
_PLANS = {
    "Gemm": "cute_dialect.op.plans.gemm", "GroupedGemm": "cute_dialect.op.plans.grouped",
    "ScaledGemm": "cute_dialect.op.plans.scaled", "Conv2d": "cute_dialect.op.plans.conv",
    "Attention": "cute_dialect.op.plans.attention",
}  # fmt: skip
"""Names of plans -> their modules."""

Fields: TypeAlias = "Mapping[str, Any]"
"""Settings or choices of a plan as data."""


class SavedKernels:
    """The kernels of a folder by name, each loaded on first use; ``choices`` maps problems to choices."""

    def __init__(self, folder: Path, names: Iterable[str], choices: Mapping[str, Fields]):
        self.folder, self.names, self.choices = folder, tuple(names), choices
        self._loaded = Libraries()

    def has(self, sources: Iterable[Source]) -> bool:
        """Return True if the folder has all these kernels."""
        return all([source.name in self.names for source in sources])

    def module(self, name: str) -> CompiledModule:
        """Return a kernel.  Raises UnsupportedError if the folder does not have it."""
        if name not in self.names:
            raise UnsupportedError(
                f"load: the call needs {name}, which the folder does not have "
                f"(it has {', '.join(self.names) or 'none'}); run the call before saving the plan"
            )
        return self._loaded.get(name, lambda: load_module(self.folder / name))


def module_of(source: Source, saved: SavedKernels | None, *, cpu: bool = False) -> CompiledModule:
    """Return a kernel from a folder, or else compiled for the GPU or for the interpreter."""
    return source.compiled(cpu=cpu) if saved is None else saved.module(source.name)


def write(
    folder: str | os.PathLike[str], plan: str, settings: Fields, kernels: Sequence[Source],
    choices: Mapping[str, Fields] | None = None,
) -> str:  # fmt: skip
    """Write a plan and its kernels to a folder that is new, empty or has a plan already, and return its path.

    Raises UnsupportedError for a folder with other contents.
    """
    to = Path(checked_path("save", "folder", folder, ArgumentError))
    if to.exists() and any(to.iterdir()) and not (to / _FILE).exists():
        raise UnsupportedError(f"save: {to} exists and does not contain a plan; choose another folder")
    to.mkdir(parents=True, exist_ok=True)
    for source in kernels:
        whole(source).save(to / source.name)
    document = {
        "format": FORMAT, "plan": plan, "settings": settings, "choices": dict(choices or {}),
        "kernels": [source.name for source in kernels],
    }  # fmt: skip
    replace_file(to / _FILE, (json.dumps(document, indent=1) + "\n").encode())
    return str(to)


@checks_keywords
def load(folder: str | os.PathLike[str]) -> Any:
    """Return the plan saved in a folder, such as a :class:`~cute_dialect.op.plans.gemm.Gemm`.

    It has the kernels of the folder only, and needs no compiler.  Raises UnsupportedError.
    """
    path = Path(checked_path("load", "folder", folder, ArgumentError)) / _FILE
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["format"] != FORMAT:
            raise UnsupportedError(
                f"load: {path} has format {document['format']!r}, but this version reads {FORMAT}; save the plan again"
            )
        name = document["plan"]
        kind = cast("type[Recorded]", getattr(import_module(_PLANS[name]), name))
        plan = kind.of_settings(document["settings"])
        plan.saved = SavedKernels(Path(folder), document["kernels"], document["choices"])
    except OpError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as e:
        raise UnsupportedError(f"load: {path} is not a plan ({e}); Gemm.save() writes one") from None
    return plan
