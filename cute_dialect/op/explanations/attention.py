"""Explanation of attention calls: the result of :func:`cute_dialect.op.explain`.

>>> print(explain_attention((4, 16, 4096, 128), (4, 4, 4096, 128), causal=True))
attention of 4 sequences, 16 heads of 128 on 4, 4096 queries, 4096 keys, f16
  kernel    attention-f16-128-right-128x128
  tiles     2048 of 128 queries, 128 keys per step, 132 blocks of 384 threads
  order     head by head, the first query tile of each paired with the last
  memory    2 stages of K and V, 2 of Q: 196608 bytes of shared memory
  bound     277.9 us: 275 GFLOP on tensor cores, 168 MB of memory (an H200)
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import prod
from operator import mul
from typing import Any, TypeAlias

from cute_dialect.arch.targets import TARGETS
from cute_dialect.kernels.attention.backward_config import BackwardConfig
from cute_dialect.kernels.attention.config import ELEMENTS, AttentionConfig
from cute_dialect.kernels.attention.sm100 import COLUMNS, LAUNCHED, REGISTERS, THREADS, TILES, Sm100Attention
from cute_dialect.kernels.attention.sm100 import TILE as SM100_TILE
from cute_dialect.kernels.common.elements import BITS
from cute_dialect.op.arrays.dtypes import element_name, listed
from cute_dialect.op.epilogue.score_functions import trace_scores
from cute_dialect.op.errors import DtypeError, EpilogueError, UnsupportedError
from cute_dialect.op.execute.attention import (
    AttentionDispatch,
    TensorMemoryDispatch,
    tensor_memory_way,
    tiles_of,
    way_of,
)
from cute_dialect.op.execute.attention_backward import (
    AttentionBackwardProblem,
    BackwardDispatch,
    choose_backward,
)
from cute_dialect.op.explanations.gemm import Explanation, Line
from cute_dialect.op.keywords import check_flag
from cute_dialect.op.problems.attention import DESCALES, Form, Numbers, factor_of, form_of, is_readable, numbers_of
from cute_dialect.op.problems.flex_attention import FLEX, fields_of
from cute_dialect.op.select.backends import LATEST, WGMMA, capability_named, of_tensor_memory, unmeasured
from cute_dialect.op.select.sm100_model import attention_lines
from cute_dialect.op.signature_types import Window
from cute_dialect.runtime.arrays import ArrayView, NotAnArray, view_of

_ELEMENTS = dict.fromkeys(("sinks", "alibi_slopes", "mask", *DESCALES), "f32") | {"rng_state": "i64"}
"""Element types of arrays that are given as shapes."""
Shaped: TypeAlias = Any
"""An array, or the shape of a contiguous one."""
PEAK = 989.5
"""TFLOP/s of tensor cores with 16-bit operands (NVIDIA H100 and H200 data sheets); twice as many with 8-bit ones."""
BANDWIDTH = 4.8
"""TB/s of an H200's memory (data sheet)."""


@dataclass(frozen=True, kw_only=True)
class AttentionExplanation(Explanation):
    """Kernels of an attention call and a lower bound of its time.

    ``flops`` is 0 if the lengths of packed sequences are known to the GPU only.
    """

    form: Form  # the call, checked
    way: AttentionDispatch  # the kernels and their configurations
    copied: tuple[str, ...]  # arrays that are copied first
    seen: float = 1.0  # share of the blocks of queries and keys that a block mask lists
    backward: BackwardDispatch | None = None  # kernels of the gradients of flex attention, if there are any

    @property
    def config(self) -> AttentionConfig:
        """The kernel's configuration."""
        return self.way.config

    @property
    def tiles(self) -> int:
        """Number of query tiles, including empty ones of sequences shorter than the longest."""
        return tiles_of(self.way.form, self.config)

    def _title(self) -> str:
        return _title(self.form)

    def _layout(self) -> Iterator[Line]:
        c = self.config
        blocks = min(c.sms, self.tiles * self.way.parts)
        kind = "queries and heads" if c.pack else "queries"
        yield (
            "tiles",
            (f"{self.tiles} of {c.tile_m} {kind}, {c.tile_n} keys per step, {blocks} blocks of {c.threads} threads"),
        )
        yield "order", "head by head" + (", the first query tile of each paired with the last" if c.takes_pairs else "")
        values = "V and its transpose" if c.transposes else "V"
        stages = f"{c.stages} stages of K{',' if c.transposes else ' and'} {values}, {c.q_stages} of Q"
        yield "memory", f"{stages}: {c.smem_bytes} bytes of shared memory"

    def _limits(self) -> str:
        work = f"{self.flops / 1e9:.3g} GFLOP on tensor cores, " if self.flops else ""
        return f"{work}{self.bytes / 1e6:.3g} MB of memory (an H200)"

    def _after(self) -> Iterator[Line]:
        if self.way.parts > 1:
            yield "split", f"keys in {self.way.parts} slices, combined by {self.way.kernels[1].name}"
        if self.config.pack or self.way.form.heads != self.form.heads:
            yield "packed", "the query heads that share keys are the rows of one tile"
        if self.form.blocks[1]:
            m, n = self.form.blocks
            yield "blocks", f"{self.seen:.1%} of those of {m} queries and {n} keys are listed"
        if self.backward is not None:
            yield "gradients", self.backward.config.name
        for name in self.copied:
            yield "copied", f"{name}: its heads are not contiguous and aligned to 16 bytes"


@dataclass(frozen=True, kw_only=True)
class TensorMemoryExplanation(Explanation):
    """The kernel of an attention call on a chip with tensor memory, and static bounds of its time."""

    form: Form  # the call, checked
    way: TensorMemoryDispatch  # the kernel and its configuration
    copied: tuple[str, ...]  # arrays that are copied first

    @property
    def config(self) -> Sm100Attention:
        """The kernel's configuration."""
        return self.way.config

    def _title(self) -> str:
        return f"{_title(self.form)}, on {self.gpu}"

    def _layout(self) -> Iterator[Line]:
        f = self.form
        rows = TILES * SM100_TILE
        tiles = -(-f.rows // rows) * f.heads * f.batch
        yield "tiles", f"{tiles} of {rows} queries, {SM100_TILE} keys per step, a block of {THREADS} threads each"

    def _occupancy(self) -> Iterator[Line]:
        c, t = self.config, TARGETS[self.config.chip]
        yield (
            "block",
            f"{c.shared_bytes} of {t.shared} bytes of shared memory, {COLUMNS} of {t.tmem_columns} columns of tensor "
            f"memory, {LAUNCHED} registers per thread",
        )
        yield "roles", f"registers per thread: {', '.join(f'{role} {n}' for role, n in REGISTERS.items())}"
        yield "columns", f"{COLUMNS // 2} of scores and weights, {TILES * c.head} of the results"

    def _limits(self) -> str:
        return f"{self.flops / 1e9:.3g} GFLOP, {self.bytes / 1e6:.3g} MB (tensor cores, DRAM)"

    def _after(self) -> Iterator[Line]:
        yield from attention_lines(self.config, self.form, self.bytes)
        for name in self.copied:
            yield "copied", f"{name}: its heads are not contiguous and aligned to 16 bytes"


def explain_attention(
    q: Shaped, k: Shaped, v: Shaped = None, *, causal: bool | str = False, scale: float | None = None,
    window: Window | None = None, softcap: float = 0.0, sinks: Shaped = None,
    alibi_slopes: Shaped = None, mask: Shaped = None, dropout_p: float = 0.0, rng_state: Shaped = None,
    lse: bool = False, layout: str = "bhsd", seqused_k: Shaped = None, page_table: Shaped = None,
    seqused_q: Shaped = None, leftpad_k: Shaped = None, seqused_k_offset: int = 0, attention_chunk: int = 0,
    cu_seqlens_q: Shaped = None, cu_seqlens_k: Shaped = None, q_descale: Shaped = None, k_descale: Shaped = None,
    v_descale: Shaped = None, dtype: object = None, max_seqlen_q: int | None = None, max_seqlen_k: int | None = None,
    deterministic: bool | None = None, kernel: AttentionConfig | str | None = None, split_keys: int | None = None,
    element: str = "f16", kernel_cc: int = LATEST.chip, gpu: str = "",
) -> AttentionExplanation | TensorMemoryExplanation:  # fmt: skip
    """Return the explanation of an attention call, on a chip with tensor memory if ``kernel_cc`` or ``gpu`` has it.

    Arrays may be replaced by shapes, for contiguous arrays of type ``element``; so may the offsets of packed
    sequences.  Offsets in CPU memory are read.  ``max_seqlen_k`` and ``deterministic`` only affect gradients, and
    ``rng_state`` is not needed.  Raises the errors of the function.
    """
    if deterministic is not None:
        check_flag("attention", "deterministic", deterministic)
    arrays = {"q": q, "k": k, "v": k if v is None else v}
    views = {name: view_or_shape("attention", x, element) for name, x in arrays.items()}
    more = {"cu_seqlens_q": cu_seqlens_q, "cu_seqlens_k": cu_seqlens_k, "sinks": sinks, "alibi_slopes": alibi_slopes}
    more |= {"mask": mask, "seqused_k": seqused_k, "page_table": page_table}
    more |= {"seqused_q": seqused_q, "leftpad_k": leftpad_k}
    factors = dict(zip(DESCALES, (q_descale, k_descale, v_descale)))
    more |= {name: x if factor_of(name, x) is None else () for name, x in factors.items()}
    if dropout_p:
        more["rng_state"] = (2,) if rng_state is None else rng_state
    given = {name: x for name, x in more.items() if x is not None}
    views |= {name: view_or_shape("attention", x, _ELEMENTS.get(name, "i32")) for name, x in given.items()}
    if views["q"].dtype not in ELEMENTS:
        raise UnsupportedError(f"attention: q has dtype {views['q'].dtype}; pass an array of {listed(ELEMENTS)}")
    numbers = Numbers(softcap, seqused_k_offset, attention_chunk, dtype, dropout_p)
    form = form_of(views, causal, scale, window, lse, layout, max_seqlen_q, views["q"].dtype, numbers)
    flops = 2 * (form.size + form.values) * form.heads * _multiplied(form, views)
    copied = tuple([name for name in ("q", "k", "v") if not is_readable(views[name])])
    moved = _bytes(form, views)
    capability = capability_named(gpu)
    backend = unmeasured(kernel_cc) if capability is None else of_tensor_memory(capability)
    if backend is not None:
        found = tensor_memory_way(form, backend, kernel, split_keys, of_plan=capability is None)
        return TensorMemoryExplanation(
            operation="attention",
            gpu=gpu or backend.target,
            kernel=found.config.name,
            status=backend.status,
            flops=flops,
            bytes=moved,
            kernels=found.kernels,
            form=form,
            way=found,
            copied=copied,
        )
    if capability is not None:
        WGMMA.check_gpu(capability, "attention")
    bound = max(flops / PEAK / 1e6 / (2 if form.output else 1), moved / BANDWIDTH / 1e6)
    way = way_of(form, kernel, split_keys)
    return AttentionExplanation(
        operation="attention", gpu=gpu, kernel=way.config.name, flops=flops, bytes=moved, bound=bound,
        kernels=way.kernels, form=form, way=way, copied=copied,
    )  # fmt: skip


def explain_flex(
    query: Shaped, key: Shaped, value: Shaped = None, score_mod: Any = None, block_mask: Any = None,
    scale: float | None = None, enable_gqa: bool = True, return_lse: bool = False, *,
    kernel: AttentionConfig | str | None = None, element: str = "f16",
) -> AttentionExplanation:  # fmt: skip
    """Return the explanation of a call of flex attention, with the kernel of its gradients if it has any.

    The lists of a block mask are read, also those on a GPU.  The FLOPs are those of the listed blocks.
    """
    check_flag(FLEX, "return_lse", return_lse)
    mask = fields_of(block_mask)
    plain = explain_attention(query, key, value, scale=scale, lse=return_lse, element=element)
    functions = trace_scores(FLEX, score_mod, mask.mask_mod, keeps_score=scale is not None and scale <= 0).graph
    form = plain.form._replace(functions=functions, blocks=mask.sizes)
    way = way_of(form, kernel)
    seen = 1.0
    if mask.sizes[1]:
        counts = [x for x in (mask.lists[0], mask.lists[2]) if x is not None]
        blocks = -(-form.queries // mask.sizes[0]) * -(-form.keys // mask.sizes[1])
        seen = sum([float(x.sum()) for x in counts]) / (prod(counts[0].shape[:-1]) * blocks)
    problem = AttentionBackwardProblem(form._replace(lse=True))
    try:
        backward = choose_backward(problem)
    except EpilogueError:  # a function without a derivative
        backward = None
    flops = int(plain.flops * seen)
    return AttentionExplanation(
        operation=FLEX, kernel=way.config.name, flops=flops, bytes=plain.bytes,
        bound=max(flops / PEAK / 1e6, plain.bytes / BANDWIDTH / 1e6), kernels=way.kernels, form=form, way=way,
        copied=plain.copied, seen=seen, backward=backward,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class AttentionBackwardExplanation(Explanation):
    """Kernels of the gradients of an attention call and a lower bound of their time."""

    form: Form  # the call, checked
    way: BackwardDispatch  # the kernels and their configuration

    @property
    def config(self) -> BackwardConfig:
        """The configuration of the kernels."""
        return self.way.config

    def _title(self) -> str:
        return f"backward of {_title(self.form)}"

    def _layout(self) -> Iterator[Line]:
        c, f = self.config, self.form
        tiles = -(-f.keys // c.tile_n) * (f.heads // f.sharing) * f.batch
        yield "tiles", f"{tiles} of {c.tile_n} keys, {c.tile_m} queries per step, blocks of {c.threads} threads"
        yield "memory", f"{c.smem_bytes} bytes of shared memory"
        spaces = c.workspaces(f.queries, f.heads, f.batch, f.keys, f.heads // f.sharing).values()
        yield "workspace", f"{sum(4 * prod(shape) for _, shape in spaces) / 1e6:.3g} MB"

    def _limits(self) -> str:
        work = f"{self.flops / 1e9:.3g} GFLOP on tensor cores, " if self.flops else ""
        return f"{work}{self.bytes / 1e6:.3g} MB of memory (an H200)"

    def _after(self) -> Iterator[Line]:
        if self.way.parts > 1:
            yield "split", f"queries and heads of a key tile in {self.way.parts} slices, dk and dv added in f32"
        yield "launches", ", ".join(kernel.name for kernel in self.way.kernels)


def explain_backward(
    q: Shaped, k: Shaped, v: Shaped = None, *, deterministic: bool | None = None, dlse: Shaped = None,
    kernel: BackwardConfig | str | None = None, element: str = "f16", max_seqlen_k: int | None = None, **more: Any,
) -> AttentionBackwardExplanation:  # fmt: skip
    """Return the explanation of the gradients of an attention call.

    Args:
        dlse: gradient of ``lse``; only its presence matters.
        q, k, v, kernel, element, more: as in :func:`explain_attention`.
    """
    if deterministic is not None:
        check_flag("attention_backward", "deterministic", deterministic)
    forward = explain_attention(q, k, v, lse=True, element=element, **more)
    form = forward.form
    way = choose_backward(AttentionBackwardProblem(form, dlse is not None, bool(deterministic), max_seqlen_k), kernel)
    flops, moved = forward.flops * 5 // 2, forward.bytes * 2
    return AttentionBackwardExplanation(
        operation="attention_backward", kernel=way.config.name, flops=flops, bytes=moved,
        bound=max(flops / PEAK / 1e6, moved / BANDWIDTH / 1e6), kernels=way.kernels, form=form, way=way,
    )  # fmt: skip


def _title(f: Form) -> str:
    shared = f" on {f.heads // f.sharing}" if f.sharing > 1 else ""
    longest = f"the longest of {f.rows}, " if f.packed else ""
    return (
        f"attention of {f.batch} {'packed ' if f.packed else ''}sequences, {longest}{f.heads} heads of {f.size}"
        f"{' and ' * (f.size_v > 0)}{f.size_v or ''}{shared}{_functions(f)}, {f.queries} queries, {f.keys} keys, "
        f"{f.element}{' to ' * bool(f.output)}{f.output}"
    )


def _functions(form: Form) -> str:
    """Return the functions of scores as text."""
    names = {"soft cap": form.softcap, "ALiBi": form.alibi, "sinks": form.sinks, "dropout": form.dropout}
    functions = form.functions
    names["a function of scores"] = functions is not None and functions.has("score")
    names["a function of masks"] = functions is not None and functions.has("visible")
    names["a block mask"] = form.blocks[1]
    names["mask" if form.bias == "i1" else "bias"] = form.bias
    found = [name for name, used in names.items() if used]
    return f", with {', '.join(found)}" if found else ""


def _bytes(form: Form, views: Mapping[str, ArrayView]) -> int:
    """Return the bytes that a call reads and writes; all rows of packed sequences are counted."""
    heads = form.heads // form.sharing
    keys = form.keys if form.packed else _seen(form)
    each = 1 if form.packed else form.batch
    keys = keys * (form.batch if form.page else each)
    size = BITS[form.element] // 8
    moved = size * (form.size + form.values) * keys * heads
    moved += each * form.queries * form.heads * (size * form.size + BITS[form.result] // 8 * form.values)
    logs = each * form.heads * form.queries * 4 if form.lse else 0
    bias = prod(views["mask"].shape) * BITS.get(form.bias, 8) // 8 if form.bias else 0
    return moved + logs + bias


def _seen(form: Form) -> int:
    """Return the number of keys of a sequence that at least one query sees."""
    shift = form.keys - form.queries if form.from_end else 0
    left, right = form.mask in ("left", "both"), form.mask in ("right", "both")
    first = max(0, shift - form.left) if left else 0
    last = min(form.keys, form.queries + shift + form.right) if right else form.keys
    return max(0, last - first)


def _multiplied(form: Form, views: Mapping[str, ArrayView]) -> int:
    """Return the number of query-key pairs of a head in all sequences, or 0 if the offsets are on a GPU."""
    if not form.packed:
        return form.batch * multiplications(form)
    begins = [views[key] for key in ("cu_seqlens_q", "cu_seqlens_k") if key in views]
    if len(begins) < 2 or any(view.device >= 0 for view in begins):
        return 0
    lengths = [[y - x for x, y in pairwise(numbers_of(view))] for view in begins]
    return sum(multiplications(form._replace(queries=m, keys=n)) for m, n in zip(*lengths))


def multiplications(form: Form) -> int:
    """Return the number of query-key pairs of a head, without hidden keys."""
    left, right = form.mask in ("left", "both"), form.mask in ("right", "both")
    if not left and not right:
        return form.queries * form.keys
    shift, total = form.keys - form.queries if form.from_end else 0, 0
    for row in range(form.queries):
        low = max(0, row + shift - form.left) if left else 0
        high = min(form.keys, row + shift + form.right + 1) if right else form.keys
        total += max(0, high - low)
    return total


def view_or_shape(call: str, x: Shaped, element: str) -> ArrayView:
    """Return a view of an array; shapes and arrays without memory become arrays on a GPU."""
    if not isinstance(x, tuple | list):
        try:
            return view_of(x)
        except NotAnArray:
            pass
    else:
        shape = tuple(x)
        steps = list(accumulate(reversed(shape[1:]), mul, initial=1))
        return ArrayView(0, shape, tuple(reversed(steps)), element, 0, "cuda", None)
    if not hasattr(x, "shape"):
        raise DtypeError(f"{call}: {x!r} is not an array; pass an array or a shape")
    return ArrayView(0, tuple(x.shape), tuple(x.stride()), element_name(x.dtype), 0, "cuda", None)
