"""Plans in a folder, with their compiled kernels: what :meth:`Gemm.save <cute_dialect.op.plans.plan.Gemm.save>`
writes runs with the driver and numpy or torch, without the compiler.

    plan.run(a, b, c, d)                                 # what was run, or compiled, is saved
    plan.save("folder")
    op.load("folder").run(a, b, c, d)

The folder has ``plan.json`` and a folder for each kernel, as ``CompiledModule.save`` makes them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from cute_dialect.op.epilogue.tracing import Traced
from cute_dialect.op.errors import EpilogueError, LayoutError, OpError, UnsupportedError
from cute_dialect.op.plans.arguments import Arguments, on_the_cpu
from cute_dialect.op.plans.functors import number
from cute_dialect.op.plans.launcher import Launcher
from cute_dialect.op.plans.planned import Kinds, Type, check, fits_tma, folded
from cute_dialect.op.plans.recipe import Operands, Recipe
from cute_dialect.op.plans.steps import Split
from cute_dialect.op.plans.visiting import arguments_for, visited
from cute_dialect.runtime import load as load_module

if TYPE_CHECKING:  # pragma: no cover
    from typing import Unpack

    from cute_dialect.kernels.combine_parts import CombineConfig
    from cute_dialect.op.epilogue.bound import Bound
    from cute_dialect.op.plans.operation import GemmOperationUniversal
    from cute_dialect.runtime.launch import CallOptions, CompiledModule

__all__ = ["FORMAT", "Entry", "SavedGemm", "load", "write"]

FORMAT = 3
_FILE = "plan.json"


class Entry(NamedTuple):
    """A kernel that is saved: its folder, how it is called, and for which calls: ``alpha``, ``beta``: 1 and 0 where
    they are built in, else None; ``bias``: what it is of and its element; ``batch``: of several matrices;
    ``problems``: (matrices, M, N, K) that it was run for; ``graph``: the name of the graph of a traced epilogue.
    """

    folder: str
    recipe: Recipe
    alpha: float | None
    beta: float | None
    bias: tuple[str, str]
    batch: bool
    problems: tuple[tuple[int, ...], ...] = ()
    graph: str = ""

    def takes(self, x: Operands) -> bool:
        """Tell whether it computes a call."""
        views = [v for v in (x.a, x.b, x.c, x.d) if v is not None]
        bias = ("", "") if x.bias is None else (x.along, x.bias.dtype)
        return (
            not self.recipe.sums
            and self.graph == graph_name(x)
            and (self.alpha is None or self.alpha == x.alpha)
            and (self.beta == 0.0) == (x.beta == 0.0)
            and self.bias == bias
            and self.batch == (len(x.d.shape) == 3)
            and (not self.recipe.tma or all(map(fits_tma, views)))
        )

    def to_json(self) -> dict[str, object]:
        """Return it as data."""
        return {**self._asdict(), "recipe": self.recipe.to_json()}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Entry:
        """Return the entry of :meth:`to_json`."""
        values: dict[str, Any] = dict(fields)
        values["recipe"], values["bias"] = Recipe.from_json(values["recipe"]), tuple(values["bias"])
        values["problems"] = tuple([tuple(p) for p in values["problems"]])
        return cls(**values)


def graph_name(x: Operands) -> str:
    """Return the name of the graph of a call, "" where there is none."""
    return "" if x.graph is None else x.graph.name


def problem(x: Operands) -> tuple[int, ...]:
    """Return what tells problems apart: (matrices, M, N, K)."""
    matrices = x.d.shape[0] if len(x.d.shape) == 3 else 1
    return (matrices, *x.d.shape[-2:], x.a.shape[-1])


def write(
    folder: str | os.PathLike[str], kinds: Kinds, numbers: tuple[float, float], text: str,
    kernels: Iterable[tuple[Entry, CompiledModule]], traced: Traced | None = None,
) -> str:  # fmt: skip
    """Write a plan and its kernels to a folder, new, empty or of a plan before, and return its path.  Raises
    UnsupportedError for a folder of something else.
    """
    to = Path(folder)
    if to.exists() and any(to.iterdir()) and not (to / _FILE).exists():
        raise UnsupportedError(f"save: {to} exists and holds no plan; it is left alone: choose another folder")
    to.mkdir(parents=True, exist_ok=True)
    entries: list[dict[str, object]] = []
    for entry, module in kernels:
        module.save(to / entry.folder)
        entries.append(entry.to_json())
    of = {name: None if t is None else list(t) for name, t in zip("ABCD", kinds)}
    document: dict[str, object] = {
        "format": FORMAT,
        "plan": text,
        **of,
        "alpha": numbers[0],
        "beta": numbers[1],
        "kernels": entries,
    }
    document["epilogue"] = None if traced is None else traced.to_json()
    (to / _FILE).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return str(to)


def load(folder: str | os.PathLike[str]) -> SavedGemm:
    """Read what :meth:`Gemm.save <cute_dialect.op.plans.plan.Gemm.save>` wrote; needs no compiler.  Raises
    UnsupportedError.
    """
    path = Path(folder) / _FILE
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["format"] != FORMAT:
            raise UnsupportedError(f"load: {path} has format {document['format']!r}, this version reads {FORMAT}")
        types = [None if document[n] is None else Type(*document[n]) for n in "ABCD"]
        entries = [Entry.from_json(e) for e in document["kernels"]]
        numbers = float(document["alpha"]), float(document["beta"])
        of = document["epilogue"]
        traced = None if of is None else Traced.from_json(of)
    except OpError:
        raise
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise UnsupportedError(f"load: expected a plan (Gemm.save writes one) in {path}: {e}") from None
    return SavedGemm(Path(folder), Kinds(*types), numbers, entries, traced)  # type: ignore[arg-type]


class _Operation:
    """Kernels of a folder, as :class:`~cute_dialect.op.plans.arguments.Arguments` uses an operation."""

    by_tma = needs_hopper = False

    def __init__(self, folder: Path, kinds: Kinds, entries: Sequence[Entry]):
        self._folder, self._entries, self.D = folder, entries, kinds.d
        self._launchers: dict[str, Launcher] = {}

    def variant_for(self, x: Operands) -> Entry:
        """Return the kernel for a call: that which was run for its problem, else any that takes it."""
        found = [e for e in self._entries if e.takes(x)]
        if not found:
            names = ", ".join(e.recipe.name for e in self._entries)
            raise UnsupportedError(
                f"SavedGemm.run: expected a call that is saved (there are {names}), got L, M, N, K of "
                f"{problem(x)}: run it before it is saved"
            )
        return next((e for e in found if problem(x) in e.problems), found[0])

    def recipe_of(self, entry: Entry) -> Recipe:
        """Return how a kernel is called."""
        return entry.recipe

    def combiner(self, config: CombineConfig) -> Entry:
        """Return the kernel that combines parts of reductions.  Raises UnsupportedError."""
        found = next((e for e in self._entries if e.recipe.sums and e.recipe.name.startswith(config.name)), None)
        if found is None:
            raise UnsupportedError(
                f"SavedGemm.run: expected a saved kernel {config.name}, got none: run the plan before it is saved"
            )
        return found

    def reduction_variant(self, x: Operands, sums: str) -> Entry:
        """Refuse: there is no saved kernel for sums of nothing."""
        raise UnsupportedError(
            "SavedGemm.run: expected sums of something, as kernels of nothing are not saved, got alpha 0 or K 0"
        )

    sums = "f32"

    def launcher(self, entry: Entry, on_cpu: bool) -> Launcher:
        """Return a kernel, loaded when it is first needed."""
        found = self._launchers.get(entry.folder)
        if found is None:
            found = Launcher(load_module(self._folder / entry.folder), entry.recipe)
            self._launchers[entry.folder] = found
        return found


class SavedGemm:
    """A plan that was saved; made by :func:`load`."""

    def __init__(
        self, folder: Path, kinds: Kinds, numbers: tuple[float, float], entries: Sequence[Entry],
        traced: Traced | None = None,
    ):  # fmt: skip
        self.epilogue = traced
        self.kinds, self.alpha, self.beta = kinds, *numbers
        self.kernels = tuple(entries)
        self._operation = _Operation(folder, kinds, entries)
        self._last: Arguments | None = None

    def __repr__(self) -> str:
        return f"<saved Gemm, {len(self.kernels)} kernels>"

    def arguments(
        self, A: object, B: object, C: object = None, D: object = None, alpha: float | None = None,
        beta: float | None = None, *, bias: object = None, visitor_args: Mapping[str, object] | None = None,
        stream: object = None, **options: Unpack[CallOptions],
    ) -> Arguments:  # fmt: skip
        """Return the checked arguments of :meth:`run`.  Raises OpError."""
        for name, array in (("A", A), ("B", B)):
            if array is None:
                raise LayoutError(f"SavedGemm.run: expected {name}, got None")
        if self.epilogue is not None:
            others = {"C": C, "alpha": alpha, "beta": beta, "bias": bias}
            args = arguments_for("SavedGemm.run", self.epilogue, visitor_args, others)
            on_cpu = on_the_cpu(options)
            found = visited("SavedGemm.run", self.epilogue, self.kinds, A, B, D, args, on_cpu=on_cpu)
            return self._taken(found.operands, found.D, stream, options, found.bound)
        if visitor_args:
            raise EpilogueError(f"SavedGemm.run: expected no visitor_args, got {', '.join(visitor_args)}")
        x, d = check(
            "SavedGemm.run", self.kinds, A, B, C, D, bias=bias, on_cpu=on_the_cpu(options),
            alpha=self.alpha if alpha is None else number("alpha", alpha),
            beta=self.beta if beta is None else number("beta", beta),
        )  # fmt: skip
        return self._taken(x, d, stream, options)

    def _taken(
        self, x: Operands, d: Any, stream: object, options: CallOptions, bound: Bound | None = None
    ) -> Arguments:  # fmt: skip
        """Return the arguments of a call: of a batch as one product, where a kernel takes it."""
        one = folded(x, by_row=bound is not None and bound.graph.by_row)
        x = one if any(e.takes(one) for e in self.kernels) else x
        operation = cast("GemmOperationUniversal", self._operation)
        results = None if bound is None else bound.results
        return Arguments(operation, x, d, stream, options, Split(), "SavedGemm.run", results)

    def run(
        self, A: object, B: object, C: object = None, D: object = None, alpha: float | None = None,
        beta: float | None = None, *, sync: bool = True, bias: object = None,
        visitor_args: Mapping[str, object] | None = None, stream: object = None, **options: Unpack[CallOptions],
    ) -> Arguments:  # fmt: skip
        """Compute D as the plan does; see :meth:`Gemm.run <cute_dialect.op.plans.plan.Gemm.run>`.  Raises OpError."""
        found = self.arguments(
            A, B, C, D, alpha, beta, bias=bias, visitor_args=visitor_args, stream=stream, **options
        )  # fmt: skip
        found.launch()
        self._last = found
        if sync:
            found.sync()
        return found

    def bind(
        self, A: object, B: object, C: object, D: object, alpha: float | None = None, beta: float | None = None, *,
        bias: object = None, visitor_args: Mapping[str, object] | None = None,
    ) -> Callable[..., None]:  # fmt: skip
        """Return what launches on these arrays, and does no more."""
        return self.arguments(A, B, C, D, alpha, beta, bias=bias, visitor_args=visitor_args).bind()

    def sync(self) -> None:
        """Wait for the last run."""
        if self._last is not None:
            self._last.sync()
