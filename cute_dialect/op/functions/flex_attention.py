"""Attention with functions of scores and masks, ``op.flex_attention``, and its block masks.

The functions are traced (:mod:`cute_dialect.op.epilogue.score_functions`) and run on the scores in registers.  A block
mask lists the blocks of keys that each block of queries sees; the kernel skips the others.
"""

# torch is not installed where types are checked; arrays may belong to any library.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from functools import partial, wraps
from math import isfinite
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from cute_dialect.kernels.attention.block_mask import block_counts_text
from cute_dialect.kernels.attention.config import AttentionConfig
from cute_dialect.kernels.attention.score_graph import ScoreGraph
from cute_dialect.op.arrays.library import call_operator, check_options, chosen_device, gpu_here, is_autocast
from cute_dialect.op.epilogue.score_functions import TracedScores, trace_scores
from cute_dialect.op.errors import EpilogueError, OpError, ShapeError, UnsupportedError
from cute_dialect.op.execute.array_call import RowCall, RowKernel
from cute_dialect.op.execute.attention import captured_operands, check_call, computed, way_of
from cute_dialect.op.execute.attention_backward import (
    AttentionBackwardProblem,
    choose_backward,
    launch_backward,
)
from cute_dialect.op.execute.autocast import recast
from cute_dialect.op.execute.call_cache import KnownCalls
from cute_dialect.op.execute.recording import needs_gradients
from cute_dialect.op.keywords import check_flag, check_keywords
from cute_dialect.op.problems.attention import CALL, Form, Numbers, form_of, is_number
from cute_dialect.op.problems.flex_attention import (
    FLEX,
    KEY_LISTS,
    QUERY_LISTS,
    BlockMaskFields,
    check_lists,
    fields_of,
    known_fields,
)
from cute_dialect.op.select.backends import WGMMA
from cute_dialect.runtime.call_options import device_number
from cute_dialect.runtime.settings import flag

if TYPE_CHECKING:  # pragma: no cover
    from typing import Unpack

    from cute_dialect.op.signature_types import Array, Interpreted

__all__ = ["FlexCall", "create_block_mask", "flex_attention"]

_KNOWN = KnownCalls()
"""Cached calls."""


_NAMES = {"q": "query", "k": "key", "v": "value"}
"""Names of arrays in the kernels of attention -> arguments of ``flex_attention``."""

_F = TypeVar("_F", bound=Callable[..., Any])


def _with_names(function: _F) -> _F:
    """Decorate a function whose errors are those of ``attention``, to name the arguments of ``flex_attention``."""

    @wraps(function)
    def renamed(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except EpilogueError:  # has the names of the user's functions
            raise
        except OpError as e:
            said = re.sub(r"(?<![\w.-])[qkv](?![\w.-])", lambda found: _NAMES[found[0]], str(e))
            e.args = (re.sub(rf"^{CALL}: ", f"{FLEX}: ", said), *e.args[1:])
            raise

    return cast("_F", renamed)


class FlexCall(NamedTuple):
    """Non-array arguments of ``flex_attention``."""

    functions: ScoreGraph | None
    captured: int  # number of captured tensors
    blocks: tuple[int, int]  # queries and keys of a block of the mask; 0 without lists
    lengths: tuple[int, int]  # queries and keys of the block mask
    scale: float | None
    kernel: AttentionConfig | str | None = None
    device: object = None
    # Inputs of the functions that need gradients; None if the call needs none.
    learned: tuple[int, ...] | None = None
    enable_gqa: bool = True

    def arrays(self, tensors: Sequence[Any], names: Sequence[str]) -> dict[str, Any]:
        """Return arrays by name: query, key, value, captured tensors and then ``names``."""
        return dict(zip(("q", "k", "v", *self.inputs, *names), tensors))

    @property
    def inputs(self) -> list[str]:
        """Names of the captured tensors."""
        return [f"captured {i}" for i in range(self.captured)]

    def form(self, one: RowCall, lse: bool) -> Form:
        """Return the checked call.  Raises OpError."""
        _check_heads(one.views["q"], one.views["k"], self.enable_gqa)
        form = form_of(one.views, False, self.scale, None, lse, "bhsd", None, one.element, Numbers())
        if self.blocks[1]:
            if self.lengths != (form.queries, form.keys):
                raise ShapeError(
                    f"{FLEX}: the block mask is for {self.lengths[0]} queries and {self.lengths[1]} keys, but the "
                    f"arrays have {form.queries} and {form.keys}; create a mask for these lengths"
                )
            names = KEY_LISTS if QUERY_LISTS[0] not in one.views else (*KEY_LISTS, *QUERY_LISTS)
            check_lists(one.views, names, self.blocks, (form.batch, form.heads, form.queries, form.keys))
        return form._replace(functions=self.functions, blocks=self.blocks)

    # --------------------------------------------------------------------------------------------- calls with gradients

    @_with_names
    def computed(self, tensors: Sequence[Any]) -> tuple[Any, Any]:
        """Return the result and ``lse`` of tensors and the lists of key blocks and of blocks of queries."""
        arrays = self.arrays(tensors, (*KEY_LISTS, *QUERY_LISTS))
        others = (*self.inputs, *KEY_LISTS, *QUERY_LISTS)
        one = RowCall(FLEX, arrays, self.device, others, ("bf16", "f16"))
        form = self.form(one, True)
        self.problem(form, False)  # raises if there are no gradients
        check_call(one, form)
        one.check_backend(WGMMA)
        out, lse, *_ = computed(one, form, way_of(form, self.kernel))
        return out, lse

    def problem(self, form: Form, of_lse: bool) -> AttentionBackwardProblem:
        """Return the backward of the call.  Raises OpError if it is not supported."""
        ordered = sys.modules["torch"].are_deterministic_algorithms_enabled()
        found = AttentionBackwardProblem(form, of_lse, ordered, None, self.learned or ())
        found.functions()
        if ordered and self.learned:
            raise UnsupportedError(
                f"{FLEX}: deterministic gradients of captured tensors are not supported; pass tensor.detach(), or use "
                "torch.use_deterministic_algorithms(False)"
            )
        return found

    def gradients(self, saved: Sequence[Any], grad: Any, grad_lse: Any, needs: Sequence[bool]) -> list[Any]:
        """Return the gradients of the tensors of :meth:`computed`."""
        *tensors, out, lse = saved
        arrays = self.arrays(tensors, (*KEY_LISTS, *QUERY_LISTS))
        arrays |= {"out": out, "lse": lse, "dout": grad, "dlse": grad_lse}
        others = (*self.inputs, *KEY_LISTS, *QUERY_LISTS, "lse", "dlse")
        one = RowCall(FLEX, arrays, self.device, others)
        form = self.form(one, True)
        found: list[Any] = [one.result(one.views[name].shape) for name in ("q", "k", "v")]
        sums: dict[int | str, Any] = {}
        if 0 in (form.batch, form.heads, form.queries, form.keys):
            for x in found:
                x[...] = 0
        else:
            way = choose_backward(self.problem(form, grad_lse is not None))
            sums = launch_backward(one, way, (found[0], found[1], found[2])).sums
        for i, tensor in enumerate(tensors[3:]):
            known = sums.get(i) if needs[3 + i] else None
            found.append(None if known is None else known.to(tensor.dtype))
        return found


_MASK = "use block_mask=op.create_block_mask(mask_mod, B, H, Q_LEN, KV_LEN)"
_PACKED = "use one sequence, with a mask_mod that returns document[q_idx] == document[kv_idx]"
_SPELLINGS = {
    "mask_mod": _MASK, "mask": _MASK, "attn_mask": _MASK,
    "causal": f"{_MASK} with a mask_mod that returns q_idx >= kv_idx", "is_causal": f"{_MASK}, q_idx >= kv_idx",
    "q": "use query", "k": "use key", "v": "use value", "lse": "use return_lse", "sm_scale": "use scale",
    "softmax_scale": "use scale", "cu_seqlens_q": _PACKED, "cu_seqlens_k": _PACKED,
    "softcap": "return softcap * tanh(score / softcap) from score_mod",
}  # fmt: skip
"""Arguments of other functions of attention -> what to use instead."""


def flex_attention(
    query: Array, key: Array, value: Array, score_mod: Callable[..., Any] | None = None, block_mask: Any = None,
    scale: float | None = None, enable_gqa: bool = False, return_lse: bool = False, kernel_options: Any = None, *,
    return_aux: Any = None, kernel: AttentionConfig | str | None = None, device: object = None, stream: object = None,
    **run: Unpack[Interpreted],
) -> Any:  # fmt: skip
    """Return attention with a function of scores and a block mask; the arguments are those of torch's
    ``flex_attention``.

    Args:
        query: (B, H, S, D), f16 or bf16.
        key, value: (B, H', S', D) and (B, H', S', D').
        score_mod: ``score_mod(score, b, h, q_idx, kv_idx)`` returns the score that softmax takes.  It may use
            arithmetic, comparisons, ``torch.where``, the functions of ``op.epilogue`` and torch's functions of the
            same names, and index torch tensors of its scope: ``score + bias[h, q_idx - kv_idx]``.  Negative indices
            count from the end.
        block_mask: mask of :func:`create_block_mask` or torch's ``BlockMask``.  Its ``mask_mod`` applies to the
            partial blocks.  Without lists of full blocks, it applies to all blocks.
        scale: factor of the scores; default: ``1 / sqrt(D)``.
        enable_gqa: key and value may have fewer heads than query.
        return_lse: return a pair, with the logarithm of the sum of the exponentials of each row, (B, H, S) in f32.
        kernel_options: None; options of Triton kernels are not supported.
        return_aux: torch's ``AuxRequest``; only ``lse`` is supported.
        kernel: a name as reported by :func:`cute_dialect.op.explain`, or an ``AttentionConfig``.
        device, stream, run: as in :func:`cute_dialect.op.mm`.

    A row that sees no key is 0, with an ``lse`` of minus infinity.
    """
    if run:
        check_keywords(FLEX, flex_attention, run, spellings=_SPELLINGS)
    if is_autocast(query):
        return recast(
            FLEX, flex_attention, {"query": query, "key": key, "value": value}, score_mod=score_mod,
            block_mask=block_mask, scale=scale, enable_gqa=enable_gqa, return_lse=return_lse,
            kernel_options=kernel_options, return_aux=return_aux, kernel=kernel, device=device, stream=stream, **run,
        )  # fmt: skip
    if kernel_options is not None:
        raise UnsupportedError(f"{FLEX}: kernel_options are those of Triton kernels; omit them, or pass kernel=")
    check_flag(FLEX, "return_lse", return_lse)
    check_flag(FLEX, "enable_gqa", enable_gqa)
    aux = None if return_aux is None else _wanted_aux(return_aux)
    if scale is not None and (not is_number(scale) or not isfinite(scale)):
        raise UnsupportedError(f"{FLEX}: scale is {scale!r}; pass a finite int or float")
    torch = sys.modules.get("torch")
    if torch is not None and torch.compiler.is_compiling():
        for name, given in {"kernel": kernel, "stream": stream, **run}.items():
            if given is not None:
                raise UnsupportedError(f"{FLEX}: {name} is not supported in torch.compile; omit it")
        from cute_dialect.op.torch.flex_attention import attend_traced  # late: torch

        _check_heads(query, key, enable_gqa)
        mask = fields_of(block_mask)
        lists = _lists_of(mask, len(mask.lists) > 0 and mask.lists[len(KEY_LISTS)] is not None)

        def traced_call() -> Any:
            return attend_traced((query, key, value), score_mod, mask, lists, scale)

        found = call_operator(FLEX, traced_call, query, device, name="query")
        return (found[0], aux(lse=found[1])) if aux is not None else found if return_lse else found[0]
    mask = known_fields(block_mask)
    traced = trace_scores(FLEX, score_mod, mask.mask_mod, keeps_score=scale is not None and scale <= 0)
    lse = return_lse or aux is not None
    arrays = (query, key, value, *traced.captured)
    learned = None
    if needs_gradients(*arrays):
        learned = tuple([i for i, x in enumerate(traced.captured) if x.requires_grad])
    call = FlexCall(
        traced.graph, len(traced.captured), mask.sizes, mask.lengths, scale, kernel, device, learned, enable_gqa
    )
    tensors = (*arrays, *_lists_of(mask, learned is not None))
    compute = attended if learned is None else _with_gradients
    found = compute(call, tensors, lse, stream, run)
    return (found[0], aux(lse=found[1])) if aux is not None else found


def _check_heads(query: Any, key: Any, enable_gqa: bool) -> None:
    heads = [x.shape[1] for x in (query, key) if len(getattr(x, "shape", ())) == 4]
    if len(heads) == 2 and not enable_gqa and heads[0] != heads[1]:
        raise ShapeError(
            f"{FLEX}: query has {heads[0]} heads and key has {heads[1]}; pass equal numbers, or enable_gqa=True"
        )


def _wanted_aux(request: Any) -> Any:
    """Return the type of the second result for torch's ``return_aux``.  Raises UnsupportedError."""
    if not hasattr(request, "lse"):
        raise UnsupportedError(
            f"{FLEX}: return_aux is {request!r}; pass torch's AuxRequest(lse=True), or return_lse=True instead"
        )
    if getattr(request, "max_scores", False):
        raise UnsupportedError(f"{FLEX}: return_aux with max_scores is not supported; request lse only")
    return getattr(sys.modules[type(request).__module__], "AuxOutput")  # noqa: B009


def _lists_of(mask: BlockMaskFields, of_queries: bool) -> tuple[Any, ...]:
    """Return the lists of key blocks, and those of blocks of queries if gradients need them."""
    if not of_queries or not mask.lists:
        return mask.lists[: len(KEY_LISTS)]
    if mask.lists[len(KEY_LISTS)] is None:
        raise UnsupportedError(
            f"{FLEX}: the block mask has no {QUERY_LISTS[0]}, which gradients need; create it with "
            "compute_q_blocks=True"
        )
    return mask.lists


def attended(
    call: FlexCall, tensors: tuple[Any, ...], lse: bool, stream: object = None, run: Interpreted | None = None
) -> Any:
    """Compute a call on query, key, value, captured tensors and lists of key blocks, without gradients.

    Args:
        lse: return a pair, with the log-sum-exps.
        stream, run: as in :func:`flex_attention`.
    """
    compute = partial(_computed, call, tensors, lse, stream, run)
    if call.device is None and stream is None and not run and not flag("CUTE_OP_CHECK", False):
        return _KNOWN.call((call, lse), tensors, compute)
    return compute()


@_with_names
def _computed(call: FlexCall, tensors: tuple[Any, ...], lse: bool, stream: object, run: Interpreted | None) -> Any:
    others = (*call.inputs, *KEY_LISTS)
    arrays = call.arrays(tensors, KEY_LISTS)
    one = RowCall(FLEX, arrays, call.device, others, ("bf16", "f16"), stream=stream, run=run)
    form = call.form(one, lse)
    check_call(one, form)
    one.check_backend(WGMMA)
    with one.on():
        results = computed(one, form, way_of(form, call.kernel))
    return tuple(results[:2]) if lse else results[0]


def _with_gradients(call: FlexCall, tensors: tuple[Any, ...], lse: bool, stream: object, run: Interpreted) -> Any:
    """Compute a call on torch tensors, and record it for autograd."""
    usual = call.device is None and stream is None and not flag("CUTE_OP_CHECK", False)
    found = _KNOWN.again((call, lse), *tensors) if usual else None
    if found is not None:
        return found
    from cute_dialect.op.torch.flex_attention import attend  # late: torch

    def compute() -> object:
        found = attend(call, *tensors)
        return tuple(found) if lse else found[0]

    def checked() -> object:
        return call_operator(FLEX, compute, tensors[0], call.device, stream, run, "query")

    return _KNOWN.differentiable((call, lse), tensors, checked) if usual else checked()


# ---------------------------------------------------------------------------------------------------------- block masks


_CREATE = "create_block_mask"


def create_block_mask(
    mask_mod: Callable[..., Any], B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = 128, *, separate_full_blocks: bool = True, **run: Unpack[Interpreted],
) -> Any:  # fmt: skip
    """Return torch's ``BlockMask`` of a function, without a dense mask in memory.

    A kernel evaluates the function: one warp per block counts the visible pairs.

    Args:
        mask_mod: ``mask_mod(b, h, q_idx, kv_idx)`` returns True for visible keys; as in :func:`flex_attention`.
        B, H: sequences and heads; None for one mask that all share.
        Q_LEN, KV_LEN: queries and keys.
        device: torch device of the lists; default: the current GPU.  With "cpu" the interpreter runs the kernel.
        BLOCK_SIZE: queries and keys of a block, multiples of 64.
        separate_full_blocks: list blocks whose pairs are all visible separately, so that the function is skipped there.
        run: options of the interpreter.
    """
    import torch
    from torch.nn.attention.flex_attention import BlockMask

    if run:
        check_keywords(_CREATE, create_block_mask, run)
    check_flag(_CREATE, "separate_full_blocks", separate_full_blocks)
    sizes = BLOCK_SIZE if isinstance(BLOCK_SIZE, tuple | list) else (BLOCK_SIZE, BLOCK_SIZE)
    if len(sizes) != 2 or not all([_is_count(x) and x % 64 == 0 for x in sizes]):
        raise UnsupportedError(f"{_CREATE}: BLOCK_SIZE is {BLOCK_SIZE!r}; use multiples of 64, one or two")
    m, n = sizes
    for name, count in (("B", B), ("H", H), ("Q_LEN", Q_LEN), ("KV_LEN", KV_LEN)):
        is_optional = name in ("B", "H")
        if not _is_count(count) and not (is_optional and count is None):
            none = ", or None for a mask that all share" if is_optional else ""
            raise ShapeError(f"{_CREATE}: {name} is {count!r}; pass an integer of 1 or more{none}")
    traced: TracedScores = trace_scores(_CREATE, None, mask_mod)
    chosen = chosen_device(device)
    check_options(_CREATE, chosen, {})
    number = device_number(chosen)
    where = torch.device("cuda" if number is None else number)
    if where.type == "cuda":
        gpu_here(_CREATE)
    shape = (B or 1, H or 1, -(-Q_LEN // m), -(-KV_LEN // n))
    if traced.graph is None:  # all keys are visible
        counts = torch.full(shape, m * n, dtype=torch.int32, device=where)
        counts[..., -1, :] = (Q_LEN - (shape[2] - 1) * m) * n
        counts[..., -1] = counts[..., -1] // n * (KV_LEN - (shape[3] - 1) * n)
    else:
        counts = torch.empty(shape, dtype=torch.int32, device=where)
        names = [f"captured {i}" for i in range(len(traced.captured))]
        given = {"q": counts, **dict(zip(names, traced.captured))}
        one = RowCall(_CREATE, given, "cpu" if where.type == "cpu" else None, names, ("i32",), run=run)
        kernel = block_mask_kernel(traced.graph)
        view = one.x._replace(shape=shape[::-1], strides=one.x.strides[::-1])
        one.launch(kernel, view, Q_LEN, KV_LEN, m, n, *captured_operands(one, traced.graph))
    full = counts == m * n
    partial = counts > 0
    lists = _ordered(partial & ~full if separate_full_blocks else partial)
    full_lists = _ordered(full) if separate_full_blocks else (None, None)
    return BlockMask.from_kv_blocks(
        *lists, *full_lists, BLOCK_SIZE=(m, n), mask_mod=mask_mod, seq_lengths=(Q_LEN, KV_LEN)
    )


def _is_count(x: object) -> bool:
    return type(x) is not bool and isinstance(x, Integral) and int(x) >= 1


def block_mask_kernel(graph: ScoreGraph) -> RowKernel:
    """Return the kernel that counts the visible pairs in the blocks of a mask."""
    return RowKernel(f"attention-block-mask-{graph}", block_counts_text, (graph,))


def _ordered(blocks: Any) -> tuple[Any, Any]:
    """Return the number of marked blocks of each row, and their indices, followed by those of the others."""
    import torch

    counts = blocks.sum(-1, dtype=torch.int32)
    return counts, torch.argsort(blocks.to(torch.int8), dim=-1, descending=True, stable=True).to(torch.int32)
