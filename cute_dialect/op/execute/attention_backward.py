"""Backward of attention: the choice of the kernels and their launches.

>>> from cute_dialect.op.problems.attention import Form, form_of
>>> form = Form("bf16", "bhsd", False, 64, 8, 2, 1024, 1024, 128, 0.1, "right", False, 0, 0, True, None)
>>> [kernel.name for kernel in choose_backward(AttentionBackwardProblem(form)).kernels][1]
'attention-backward-bf16-128-right-64x128'
"""

# Arrays may belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect.kernels.attention.backward import backward_launches
from cute_dialect.kernels.attention.backward_config import (
    BACKWARD_HEADS,
    VALUE_HEADS,
    BackwardConfig,
    backward_config_named,
    default_backward_config,
)
from cute_dialect.op.epilogue.score_functions import native_scores, with_slopes
from cute_dialect.op.errors import DtypeError, LayoutError, ShapeError, UnsupportedError
from cute_dialect.op.execute.array_call import RowCall, RowKernel
from cute_dialect.op.execute.attention import (
    block_lists,
    captured_array,
    captured_operands,
    check_call,
    dropout_operands,
    expanded_mask,
    expanded_slopes,
    head_matrix,
    log_matrix,
    readable_matrix,
)
from cute_dialect.op.problems.attention import Form, Numbers, form_of, is_readable
from cute_dialect.op.problems.flex_attention import KEY_LISTS, QUERY_LISTS
from cute_dialect.op.problems.operands import check_overlap
from cute_dialect.op.select.backends import WGMMA
from cute_dialect.runtime.arrays import ArrayView, view_of
from cute_dialect.runtime.driver import driver

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.kernels.attention.score_graph import ScoreGraph

__all__ = [
    "BACKWARD_CALL", "BACKWARD_OTHERS", "GRADIENTS", "AttentionBackwardProblem", "BackwardArrays",
    "BackwardDispatch", "backward_form", "choose_backward", "computed_gradients", "launch_backward",
]  # fmt: skip

BACKWARD_CALL = "attention_backward"
BACKWARD_OTHERS = ("lse", "dlse", "cu_seqlens_q", "cu_seqlens_k", "alibi_slopes", "mask", "rng_state", "sinks")
"""Arrays that are not of the type of q."""
GRADIENTS = ("dq", "dk", "dv")
"""Names of the results."""

_MOST_WAVES = 8
"""Waves of key tiles from which their steps are not divided."""

_MOST = 64
"""Maximum number of slices."""

_STEP = {64: 2.64, 96: 1.95, 128: 2.32, 192: 2.2, 256: 3.31}
"""Time of a step in us by head size, measured without a mask on an H200, 2026-11-29, for 16,384 tokens."""

_TILE, _PACKED = 2.0, 4.0
"""Time of a key tile in us that does not depend on its steps, and time that a slice of packed sequences adds.

The latter counts empty slices, and slices that are not distributed evenly. It was fitted to three problems.
"""

_ADDED, _CLEARED, _CONVERTED = 6e4, 8e6, 1.0
"""Cost of slices: bytes of dk and dv that a multiprocessor adds per us, bytes of their accumulators that the GPU clears
or converts per us, and time in us that does not depend on them.

These and the time of a tile were fitted to 30 problems with heads of 64 and 128 on an H200, 2026-11-29: the chosen
number is 0.3 % slower than the fastest one measured in the geometric mean, and 6 % at most.
"""

_GAIN = 0.97
"""Steps are divided if the model's time is below this share of the time without slices."""


class AttentionBackwardProblem(NamedTuple):
    """The backward of an attention call."""

    form: Form
    of_lse: bool = False  # lse has a gradient, too
    deterministic: bool = False  # add the parts of dq in a fixed order
    longest_keys: int | None = None  # keys of the longest packed sequence, if known
    # Inputs of the functions of scores that need gradients: indices of captured tensors, or "mask".
    learned: tuple[int | str, ...] = ()

    def functions(self) -> tuple[ScoreGraph | None, tuple[str, ...]]:
        """Return the graph of the functions of scores with its slopes, and the names of the inputs of soft cap, ALiBi
        and mask.

        Raises EpilogueError if there is no derivative.
        """
        f = self.form
        if f.functions is not None:
            return with_slopes(f.functions, tuple([i for i in self.learned if isinstance(i, int)])), ()
        native = native_scores(f.softcap > 0, f.alibi, f.bias)
        learned = tuple([i for i, name in enumerate(native.inputs) if name in self.learned])
        return with_slopes(native.graph, learned), native.inputs


class BackwardDispatch(NamedTuple):
    """Kernels of a backward pass."""

    problem: AttentionBackwardProblem
    config: BackwardConfig
    parts: int = 1  # slices of the steps of a key tile, each computed by a block of its own

    @property
    def kernels(self) -> tuple[RowKernel, ...]:
        """The kernels, in the order of their launches."""
        launches = backward_launches(self.config)
        return tuple([RowKernel(x.name, x.text, (self.config,), x.host) for x in launches])

    def resident(self, multiprocessors: int) -> BackwardDispatch:
        """Return kernels whose blocks are all resident, because those with a fixed order wait for each other.

        >>> form = Form("bf16", "bhsd", False, 64, 8, 2, 1024, 1024, 128, 0.1, "right", False, 0, 0, True, None)
        >>> way = choose_backward(AttentionBackwardProblem(form, deterministic=True))
        >>> way.resident(114).config.sms, way.resident(160).config.sms
        (114, 132)
        """
        return self._replace(config=self.config._replace(sms=min(self.config.sms, multiprocessors)))


def choose_backward(problem: AttentionBackwardProblem, kernel: BackwardConfig | str | None = None) -> BackwardDispatch:
    """Return the kernels of a backward pass.

    Args:
        problem: the call.
        kernel: the name of a kernel, or a configuration whose tiles and stages are used.

    Raises UnsupportedError.
    """
    f, longest = problem.form, problem.longest_keys
    if longest is not None and (type(longest) is not int or longest < 0):
        raise ShapeError(f"{BACKWARD_CALL}: max_seqlen_k is {longest!r}; pass an int of 0 or more")
    head = next(h for h in BACKWARD_HEADS if h >= max(f.size, f.values))  # TMA pads q and k, or v, with zeros
    try:
        found = backward_config_named(kernel) if isinstance(kernel, str) else kernel
        if found is None:
            found = _default_config(problem, head)
            head = found.head
            if f.blocks[1] and not problem.deterministic:
                found = found._replace(dynamic=True)  # the lists of a block mask have different lengths
        if not isinstance(found, BackwardConfig):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ValueError(f"kernel is {kernel!r}; pass a kernel name or a BackwardConfig")
        config = found._replace(
            element=f.element, head=head, mask=f.mask, from_end=f.from_end, packed=f.packed, dlse=problem.of_lse,
            deterministic=problem.deterministic, functions=problem.functions()[0], block_m=f.blocks[0],
            block_n=f.blocks[1], head_v=_value_head(f, head), dropout=f.dropout > 0,
        )  # fmt: skip
        parts = slices_of(problem, config) if (kernel is None or config.split) and not problem.deterministic else 1
        if config.split:
            parts = max(2, parts)
        config = config._replace(split=config.split or parts > 1)
        config.check()
        if isinstance(kernel, str) and config.name != kernel:
            raise ValueError(f'kernel "{kernel}" does not match this call; use "{config.name}" or a variant of it')
    except ValueError as e:
        raise UnsupportedError(f"{BACKWARD_CALL}: {e}") from None
    return BackwardDispatch(problem, config, parts)


def _default_config(problem: AttentionBackwardProblem, head: int) -> BackwardConfig:
    """Return the default tiles and stages for a head dimension."""
    f = problem.form
    if f.blocks[1] % 128 and head <= 128:  # blocks of 64 keys
        found = default_backward_config(f.element, 64 if head == 64 else 128, f.mask)
        return found._replace(tile_m=64, tile_n=64, ahead=0, late=False, halves=True)
    found = default_backward_config(f.element, head, f.mask)
    if head == 64 and (f.blocks[1] or problem.functions()[0] is not None):
        # The scores of 128 queries and their slopes do not fit in the registers. On an H200, gradients of a block mask
        # take 0.85 of the time with 64 queries, those of ALiBi 0.6 and of a soft cap 0.5.
        return found._replace(tile_m=64, ahead=0)
    if 64 < head <= 128 and f.blocks[1]:
        # On an H200, gradients of nine block masks with heads of 128 take 0.91 to 0.97 of the time.
        return found._replace(lean=True)
    return found


def _value_head(f: Form, head: int) -> int:
    """Return the head dimension of V and dO of a kernel for Q and K of a head dimension, or 0 for the same one."""
    return next((h for h in VALUE_HEADS if f.values <= h and head > 128), 0)


# -------------------------------------------------------------------------------------------------------------- slices


@lru_cache(1024)
def slices_of(problem: AttentionBackwardProblem, config: BackwardConfig) -> int:
    """Return the number of slices of the steps of a key tile.

    A block computes all query heads that share a key tile, so that there are few blocks if many heads share few keys.
    With slices, several blocks share the tile, and add their parts of dk and dv in f32. The model takes the number of
    slices for which the multiprocessor with most work is done first.

    >>> form = Form("f16", "bhsd", False, 3, 8, 8, 394, 394, 64, 0.1, "full", False, 0, 0, True, None)
    >>> slices_of(AttentionBackwardProblem(form), default_backward_config("f16", 64))
    11
    """
    f, c = problem.form, config
    key_heads, longest = f.heads // f.sharing, f.keys if problem.longest_keys is None else problem.longest_keys
    tiles = -(-min(longest, f.keys) // c.tile_n)
    units = (-(-tiles // 2) if c.takes_pairs else tiles) * key_heads * f.batch
    if not 0 < units < _MOST_WAVES * c.sms or f.rows == 0 or f.blocks[1]:
        return 1
    steps, per_unit = _most_steps(f, c, tiles), 2 if c.takes_pairs else 1
    step = _STEP[c.head] * (c.tile_m / 128 if c.head == 64 else 1)
    step = step * (3 * c.head + 2 * c.value_head) / (5 * c.head)  # three of five matmuls have the head of Q
    sums = 2 * 4 * key_heads * c.tiles(f.keys, f.batch, of_keys=True) * c.tile_n * c.head

    def time(parts: int) -> float:
        added = 8 * c.tile_n * c.head / _ADDED if parts > 1 else 0.0
        extra = 2 * sums / _CLEARED + _CONVERTED if parts > 1 else 0.0
        slice_time = -(-steps // parts) * step + per_unit * (_TILE + added)
        if not f.packed:
            return -(-units * parts // c.sms) * slice_time + extra
        # Sequences have different lengths: one block may have the longest slice after its share of the others.
        real = min(units, key_heads * (f.keys / c.tile_n + f.batch / 2) / per_unit)
        mean = steps * (f.queries / f.batch / max(1, f.rows) + 1) / 2
        work = real * (mean * step + parts * per_unit * (_TILE + added)) + units * parts * _PACKED
        return work / c.sms + slice_time + extra

    best = min(range(1, min(steps, _MOST) + 1), key=time)
    return best if time(best) < _GAIN * time(1) else 1


def _most_steps(f: Form, c: BackwardConfig, tiles: int) -> int:
    """Return the most steps of a tile of keys, or of a pair of tiles."""
    query_tiles, shift = -(-f.rows // c.tile_m), f.keys - f.queries if f.from_end and not f.packed else 0
    left, right = c.bounded

    def steps(tile: int) -> int:
        row = tile * c.tile_n
        first = max(row - shift - f.right, 0) // c.tile_m if right else 0
        last = min(-(-(row + c.tile_n - shift + f.left) // c.tile_m), query_tiles) if left else query_tiles
        return max(0, last - first) * f.sharing

    if c.takes_pairs:
        return max(steps(i) + (steps(tiles - 1 - i) if 2 * i + 1 < tiles else 0) for i in range(-(-tiles // 2)))
    return max(map(steps, range(tiles)))


class BackwardArrays(NamedTuple):
    """Arrays that a backward pass leaves."""

    stats: Any  # log-sum-exps times log2(e) and deltas of rows, (H, tiles, 2 tile_m)
    sums: dict[int | str, Any]  # gradients of captured tensors in f32


def launch_backward(one: RowCall, way: BackwardDispatch, results: tuple[Any, Any, Any]) -> BackwardArrays:
    """Compute the gradients of q, k and v to ``results``, which are readable by TMA.

    Args:
        one: a call on q, k, v, out, dout, lse and, if they are used, dlse, cu_seqlens_q, cu_seqlens_k and the arrays of
            the functions of scores.
        way: the kernels.
        results: dq, dk and dv, like q, k and v.
    """
    if way.config.deterministic and not one.cpu:
        way = way.resident(driver().multiprocessors(one.gpu))
    f, c = way.problem.form, way.config
    operands: dict[str, Any] = {key: readable_matrix(one, key, f) for key in ("q", "k", "v", "out", "dout")}
    operands |= {key: head_matrix(view_of(x), f) for key, x in zip(("dq", "dk", "dv"), results)}
    operands |= {key: log_matrix(one.arrays[key], f) for key in ("lse", "dlse") if key in one.views}
    operands |= {"of_queries": one.views.get("cu_seqlens_q"), "of_keys": one.views.get("cu_seqlens_k")}
    spaces = c.workspaces(f.queries, f.heads, f.batch, f.keys, f.heads // f.sharing)
    operands |= {name: one.result(shape, element) for name, (element, shape) in spaces.items()}
    longest = way.problem.longest_keys
    keys = f.keys if longest is None else min(longest, f.keys)
    operands |= {"queries": f.rows, "keys": keys, "parts": way.parts}
    operands |= {"scale": f.scale, "left": f.left, "right": f.right}
    _, names = way.problem.functions()
    inputs = _native_inputs(one, f, names) if f.functions is None else captured_operands(one, f.functions)
    operands |= {f"captured {i}": x for i, x in enumerate(inputs)}
    operands |= dict(zip(QUERY_LISTS, block_lists(one, f, QUERY_LISTS)))
    if c.deterministic:
        operands |= dict(zip(KEY_LISTS, block_lists(one, f, KEY_LISTS)))
    operands |= dict(zip(("state", "threshold", "kept"), dropout_operands(one, f)))
    sums: dict[int | str, Any] = {}
    for name, i in zip(way.problem.learned, c.learned):
        source = one.views["mask" if isinstance(name, str) else f"captured {i}"]
        sums[name] = made = one.result(source.shape, "f32")
        made[...] = 0
        view = one.view_of(made)
        operands[f"sums {i}"] = expanded_mask(view, f) if isinstance(name, str) else captured_array(view)
    if f.sinks and f.packed:  # the workspace has rows of no sequence
        operands["stats"][...] = 0
    for kernel, launch in zip(way.kernels, backward_launches(c)):
        one.launch(kernel, *[operands[name] for name in launch.operands])
    return BackwardArrays(operands["stats"], sums)


def _native_inputs(one: RowCall, form: Form, names: Sequence[str]) -> list[Any]:
    """Return the inputs of the graph of soft cap, ALiBi and mask."""
    found: dict[str, Any] = {"softcap": form.softcap, "1 / softcap": 1 / form.softcap if form.softcap else 0.0}
    if form.alibi:
        found["alibi_slopes"] = expanded_slopes(one.views["alibi_slopes"], form)
    if form.bias:
        found["mask"] = expanded_mask(one.views["mask"], form)
    return [found[name] for name in names]


def computed_gradients(one: RowCall, way: BackwardDispatch) -> tuple[Any, Any, Any]:
    """Compute the gradients of q, k and v to the arrays ``dq``, ``dk`` and ``dv`` of the call, or to new ones."""
    one.expect("dout", one.views["out"].shape)
    check_call(one, way.problem.form, way.problem.longest_keys)
    one.check_backend(WGMMA)
    shapes = [one.views[key].shape for key in ("q", "k", "v")]
    is_empty = any(0 in shape for shape in shapes)
    for name, shape in zip(GRADIENTS, shapes):
        one.expect(name, shape)
        given = one.views.get(name)
        if given is not None and 0 not in shape and not is_readable(given):
            raise LayoutError(
                f"{one.name}: {name} has address {given.pointer:#x} and strides {given.strides}, but needs contiguous "
                "heads at multiples of 16 bytes"
            )
        if given is not None:
            others = {n: x for n, x in one.views.items() if n not in GRADIENTS or n < name}
            check_overlap(one.name, {**others, name: given}, name, "")
    with one.on():
        dq, dk, dv = (one.arrays[n] if n in one.views else one.result(shape) for n, shape in zip(GRADIENTS, shapes))
        results = dq, dk, dv
        if way.problem.form.packed or is_empty:
            for x in results:  # padding rows have no gradient
                x[...] = 0
        if not is_empty:
            launch_backward(one, way, results)
    return results


def backward_form(
    views: Mapping[str, ArrayView], causal: object, scale: object, window: Any, layout: str, longest: object,
    softcap: object = 0.0, dropout: object = 0.0,
) -> Form:  # fmt: skip
    """Return the checked call whose gradients are computed.  Raises OpError."""
    if "lse" not in views:
        raise ShapeError(f"{BACKWARD_CALL}: lse is None; pass the lse of op.attention(…, lse=True)")
    numbers = Numbers(softcap, dropout_p=dropout)
    form = form_of(views, causal, scale, window, True, layout, longest, views["q"].dtype, numbers)
    wanted = {"out": (*views["q"].shape[:-1], form.values), "lse": form.logs, "dlse": form.logs}
    for key, shape in wanted.items():
        view = views.get(key)
        if view is not None and view.shape != shape:
            raise ShapeError(f"{BACKWARD_CALL}: {key} has shape {view.shape}; it must have {shape}")
        if view is not None and key != "out" and view.dtype != "f32":
            raise DtypeError(f"{BACKWARD_CALL}: {key} has dtype {view.dtype}; pass an array of f32")
    return form
