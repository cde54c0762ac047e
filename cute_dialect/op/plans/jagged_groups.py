"""Calls of a grouped plan with groups of one matrix: rows, columns, steps of K, or the first rows of batch matrices."""

# Arrays belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.kernels.gemm.config import GroupedConfig
from cute_dialect.op.epilogue.combination import LinearCombination
from cute_dialect.op.errors import EpilogueError, ShapeError, UnsupportedError
from cute_dialect.op.execute.arguments import in_order, on_the_cpu, refuse_bound, wait_for
from cute_dialect.op.execute.grouped import planned
from cute_dialect.op.execute.kernels import GroupKernel, kernel_of, library, name_of, text_of
from cute_dialect.op.execute.recording import launched
from cute_dialect.op.execute.saved import Fields, SavedKernels, Source
from cute_dialect.op.plans.reference import as_f64
from cute_dialect.op.problems.grouped import GroupedArguments, shapes_of
from cute_dialect.op.problems.operands import as_planned, read
from cute_dialect.op.pycutlass.arguments import is_of_sums
from cute_dialect.op.select.backends import WGMMA
from cute_dialect.op.select.descriptions import MathOperation, TileDescription
from cute_dialect.op.select.kernel_choice import Choice
from cute_dialect.runtime.arrays import stream_of, view_of

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.interp import RunReport
    from cute_dialect.op.execute.launcher import Ready
    from cute_dialect.op.plans.grouped import GroupedGemm
    from cute_dialect.runtime.launch import CallOptions, CompiledModule

_MATH = {
    MathOperation.multiply_add_fast_f32: "3xtf32", MathOperation.multiply_add_fast_f16: "fast_f16",
    MathOperation.multiply_add_fast_bf16: "fast_bf16",
}  # fmt: skip


class _Source(NamedTuple):
    """A kernel as a :class:`~cute_dialect.op.execute.saved.Source`."""

    config: GroupKernel
    chip: str = ""

    @property
    def name(self) -> str:
        return name_of(self.config)

    def text(self) -> str:
        return text_of(self.config)

    def compiled(self, *, cpu: bool = False) -> CompiledModule:
        return library(self.config, cpu=cpu)


class CutArguments:
    """Checked operands of groups of one matrix, with :meth:`launch`, :meth:`sync` and :meth:`bind`.

    ``D`` is the result, ``kernels`` the names of the kernels in launch order.
    """

    def __init__(
        self, D: Any, launches: Sequence[tuple[GroupKernel, tuple[Any, ...]]], stream: object, options: CallOptions,
        problem: str, tile: TileDescription | None, saved: SavedKernels | None,
    ):  # fmt: skip
        self.D, self.stream, self.options, self.problem, self.saved = D, stream, options, problem, saved
        self._tile = tile
        self._launches = launches
        self._wait: Callable[[], None] | None = None

    def sources(self) -> list[Source]:
        """Return the kernels in launch order."""
        return [_Source(config) for config, _ in self._launches]

    @property
    def kernels(self) -> list[str]:
        """The names of the kernels in launch order."""
        return [source.name for source in self.sources()]

    def _ready(self, on_cpu: bool = False) -> list[Ready]:
        """Return the kernels, ready to launch."""
        if self.saved is None:
            return [kernel_of(config, on_cpu) for config, _ in self._launches]
        return [self.saved.module(source.name).kernel("launch") for source in self.sources()]

    def launch(self) -> RunReport | None:
        """Launch without waiting, except for NumPy arrays.

        On the CPU, run the interpreter and return its last report.
        """
        on_cpu, report = on_the_cpu(self.options), None
        for kernel, (_, given) in zip(self._ready(on_cpu), self._launches):
            report = launched(kernel, *given, stream=self.stream, **self.options)
        view = view_of(self.D)
        if view.device >= 0:
            self._wait = wait_for(view.device, stream_of(self.stream, (view,)))
        return report

    def bind(self) -> Callable[..., None]:
        """Return a function that only launches the kernels on these operands, which must be in GPU memory."""
        refuse_bound(view_of(self.D).device)
        return in_order([kernel.bind(*given) for kernel, (_, given) in zip(self._ready(), self._launches)])

    def sync(self) -> None:
        """Wait for the launch."""
        wait, self._wait = self._wait, None
        if wait is not None:
            wait()

    @property
    def config(self) -> GroupKernel:
        """The kernel of the GEMM.  Raises UnsupportedError if the call has no launches."""
        if not self._launches:
            raise UnsupportedError("GroupedGemm: the call is empty and has no kernel; pass groups with elements")
        return next((c for c, _ in self._launches if hasattr(c, "base")), self._launches[0][0])

    def taken(self) -> Fields:
        """Return the tile of a wgmma kernel, or else the plan's, as data."""
        found, tile = self.config if self._launches else None, self._tile
        if isinstance(found, GroupedConfig):
            choice = Choice(found.base._replace(batch=True, epilogue=Epilogue()))
            tile = TileDescription(found.base.tile, kernel=choice)
        return {"tile": None if tile is None else tile.to_json()}

    def shown(self) -> Source:
        """Return the kernel of the GEMM."""
        return _Source(self.config)


def cut_arguments(
    call: str, plan: GroupedGemm, a: Any, b: Any, c: Any, d: Any, alpha: Any, beta: float, groups: Mapping[str, Any],
    rest: str, bias: Any, visitor_args: Mapping[str, object] | None, stream: object, options: CallOptions,
) -> CutArguments:  # fmt: skip
    """Return the checked arguments of a call.  Raises OpError."""
    on_cpu, kinds = on_the_cpu(options), plan.kinds
    for name, x, kind in (("A", a, kinds.a), ("B", b, kinds.b), ("C", c, kinds.c or kinds.d), ("D", d, kinds.d)):
        if x is not None and (name != "C" or beta != 0.0):
            as_planned(call, name, read(call, name, x, on_cpu), kind)
    if kinds.d.layout != "row":
        raise UnsupportedError(f"{call}: D is column-major; groups of one matrix need a row-major D")
    if beta != 0.0 and c is None:
        raise ShapeError(f"{call}: beta is {beta}, but C is missing; pass C or beta=0")
    visitor = plan.epilogue_visitor
    if visitor is not None and not is_of_sums(visitor):
        raise EpilogueError(f"{call}: groups of one matrix need an epilogue_visitor with a parameter accum")
    of_a, asked = kinds.a.element, plan.asked
    math = {"tf32": "tf32", "f32": _MATH.get(MathOperation(asked.math), "exact")}.get(of_a, "default")
    if of_a == "f32" and asked.element_a == "tf32":
        math = "tf32"
    tile = plan.tile_description
    if tile is None and not WGMMA.is_allowed(plan.chip):
        tile = plan.tile_descriptions()[0]
    sums = "f16" if asked.accumulator == "f16" else None
    c = c if beta != 0.0 else None
    extras = LinearCombination(alpha, beta, c, bias, plan.activation, math=math, accumulator=sums)
    given = GroupedArguments(
        a, b, groups, d, extras, visitor, visitor_args if visitor is not None else None, rest,
        dtype=None if d is not None else kinds.d.element, kernel=tile,
    )  # fmt: skip
    found = planned(call, given, options.get("device"), stream)
    sizes = ["x".join(map(str, x.shape)) for x in (a, b)]
    problem = f"{' by '.join(sizes)} in {', '.join(groups)}"
    return CutArguments(found.result, found.launches, stream, options, problem, tile, plan.saved)


def cut_reference(
    call: str, a: Any, b: Any, c: Any, bias: Any, groups: Mapping[str, Any]
) -> tuple[list[Any], list[Any], list[Any] | None, list[Any]]:
    """Return the operands of each group in f64.  Raises ShapeError, UnsupportedError."""
    numbers = {n: [int(i) for i in (x if isinstance(x, list | tuple) else as_f64(x))] for n, x in groups.items()}
    s = shapes_of(call, a.shape, b.shape, {n: (len(x),) for n, x in numbers.items()})
    ((name, given),) = numbers.items()
    if name == "row_groups":
        rows = [[i for i, g in enumerate(given) if g == group] for group in range(s.groups)]
        parts: list[Any] = [slice(r[0], r[-1] + 1) if r else slice(0, 0) for r in rows]
    elif name == "lengths":
        parts = [slice(0, n) for n in given]
    else:
        ends = given[len(given) - s.groups :]
        parts = [slice(begin, end) for begin, end in zip([0, *ends], ends)]
    a, b = as_f64(a), as_f64(b)
    c = None if c is None else as_f64(c)
    each: list[tuple[Any, Any, Any]] = []
    for g, part in enumerate(parts):
        x = a[g, part] if s.form == "rows" else a[part] if s.form == "m" else a[g] if s.form == "n" else a[:, part]
        y = b[g] if s.form in ("m", "rows") else b[:, part] if s.form == "n" else b[part]
        z = c
        if c is not None and s.form != "k":
            z = c[g, part] if s.form == "rows" else c[part] if s.form == "m" else c[:, part]
        elif c is not None:
            z = c[g]
        each.append((x, y, z))
    biases: list[Any] = [bias] * s.groups
    if bias is not None:
        v = as_f64(bias)
        if (tuple(v.shape) == (s.groups, s.n) and s.form != "n") or len(v.shape) == 3:
            biases = list(v)
        elif tuple(v.shape) == (s.m, 1) and s.form == "m":
            biases = [v[part] for part in parts]
        elif s.form == "n" and v.shape[-1] == s.n:
            biases = [v.reshape(-1)[part] for part in parts]
    return [x for x, _, _ in each], [y for _, y, _ in each], None if c is None else [z for *_, z in each], biases
