"""Reduction of split-KV attention: combines the partial results of the key slices of each row.

``O`` and ``L`` are the partial results and their log-sum-exps. The result is ``out[s] = sum over p of w[p] O[p, s]``
with ``w[p] = e^(L[p] - L)`` and ``L = log(sum over p of e^(L[p]))``. Slices are added in order, so the result is
deterministic. A slice without keys has L = -inf and weight 0; a row without keys is 0.

    launch(O, L, out, …)                      # O (elements, rows, parts), L (rows, parts); out (S, D, H, B)
    launch_pair(out, lse, other, other_lse)   # two parts, merged into the first
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false, reportOptionalSubscript=false

from typing import NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.common.elements import number
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.lang.values.signature_types import Int

_WARPS, _VECTOR = 8, 4
"""Warps of a block; elements per thread and load."""


class CombineConfig(NamedTuple):
    """Configuration of the reduction.

    >>> CombineConfig(together=True).name
    'attention-combine-bf16-128-together'
    """

    element: str = "bf16"  # type of the result
    head: int = 128  # largest head dimension
    lse: bool = False  # also return the log-sum-exp of each row
    together: bool = False  # the warps of a block share the slices of one row; otherwise each warp has a row
    partial: str = "f32"  # element type of the partial results

    @property
    def name(self) -> str:
        """Name of the kernel."""
        flags = ("-lse" if self.lse else "") + ("-together" if self.together else "")
        partial = "" if self.partial == "f32" else f"-of-{self.partial}"
        return f"attention-combine-{self.element}-{self.head}{flags}{partial}"


DEFAULT = CombineConfig()


@cute.jit
def launch(
    O: cute.Tensor, L: cute.Tensor, out: cute.Tensor, lse: cute.Tensor | None = None,  # noqa: E741
    config: cute.Constexpr[CombineConfig] = DEFAULT,
):  # fmt: skip
    """Launch one block per row, or per eight rows. Rows are ordered by query, then head, then sequence."""
    assert O.shape[1] == out.shape[0] * out.shape[2] * out.shape[3], "O must have one row per query and head of out"
    assert L.shape[0] == O.shape[1], "L must have as many rows as O"
    assert L.shape[1] == O.shape[2], "L must have as many slices as O"
    blocks = O.shape[1] if config.together else cute.ceil_div(O.shape[1], _WARPS)
    combine(O, L, out, lse, config).launch(grid=blocks, block=32 * _WARPS, pdl=True)


@cute.kernel(name="combine")
def combine(
    O: cute.Tensor, L: cute.Tensor, out: cute.Tensor, lse: cute.Tensor | None,  # noqa: E741
    config: cute.Constexpr[CombineConfig],
):  # fmt: skip
    """Combine the slices of this warp's row, or of the block's."""
    c = config
    cute.arch.griddepcontrol_wait()
    cute.arch.griddepcontrol_launch_dependents()
    warp, lane = cute.arch.warp_idx(), cute.arch.lane_idx()
    block = cute.arch.block_idx().x
    row = block if c.together else block * _WARPS + warp
    count = O.shape[2]
    if row < O.shape[1]:
        most, total = _whole(L, row, lane, count)
        spans = -(-c.head // 128)
        sums = cute.make_rmem_tensor(_VECTOR * spans, cute.Float32)
        sums.fill(0.0)
        for part in range(warp if c.together else 0, count, _WARPS if c.together else 1):
            weight = _power(L[row, part] - most) / total
            # the partial result of a slice without keys is zero
            for i in cute.range_constexpr(spans):
                if (i * 32 + lane) * _VECTOR < O.shape[0]:
                    held = cute.make_rmem_tensor(_VECTOR, O.element_type)
                    cute.autovec_copy(cute.local_tile(O[None, row, part], (_VECTOR,), (i * 32 + lane,)), held)
                    for j in cute.range_constexpr(_VECTOR):
                        at = i * _VECTOR + j
                        sums[at] = cute.math.fma(weight, held[j].to(cute.Float32), sums[at])
        if c.together:
            sums = _added(sums, warp, lane, spans)
        line, s = divmod(row, out.shape[0])
        batch, head = divmod(line, out.shape[2])
        if (warp == 0) | (not c.together):
            for i in cute.range_constexpr(spans):
                if (i * 32 + lane) * _VECTOR < out.shape[1]:
                    four = cute.make_rmem_tensor(_VECTOR, out.element_type)
                    for j in cute.range_constexpr(_VECTOR):
                        four[j] = sums[i * _VECTOR + j].to(out.element_type)
                    cute.autovec_copy(four, cute.local_tile(out[s, None, head, batch], (_VECTOR,), (i * 32 + lane,)))
            if c.lse and lane == 0:
                lse[s, head, batch] = float("-inf") if most == float("-inf") else most + cute.math.log(total)


def _whole(L: cute.Tensor, row: Int, lane: Int, count: Int) -> tuple[cute.Float32, cute.Float32]:
    """Return the maximum of a row's log-sum-exps, and the sum of exponentials relative to it, or 1 for a row without
    keys.
    """
    most = cute.Float32(float("-inf"))
    for part in range(lane, count, 32):
        most = cute.arch.fmax(most, L[row, part])
    most = cute.arch.warp_reduction_max(most)
    total = cute.Float32(0.0)
    for part in range(lane, count, 32):
        total = total + _power(L[row, part] - most)
    total = cute.arch.warp_reduction_sum(total)
    return most, cute.Float32(1.0) if most == float("-inf") else total


def _power(x: cute.Float32) -> cute.Float32:
    """Return e^x, or 0 for NaN, which is the difference of two -inf."""
    return cute.Float32(0.0) if x != x else cute.math.exp(x)


def _added(sums: cute.Tensor, warp: Int, lane: Int, spans: int) -> cute.Tensor:
    """Return the reduction over all warps, in the first warp."""
    shared = cute.smem_tensor(cute.Float32, cute.make_layout((_VECTOR * spans, 32, _WARPS)), 16)
    cute.autovec_copy(sums, shared[None, lane, warp])
    cute.arch.sync_threads()
    found = cute.make_rmem_tensor(_VECTOR * spans, cute.Float32)
    found.fill(0.0)
    if warp == 0:
        for other in cute.range_constexpr(_WARPS):
            for i in cute.range_constexpr(_VECTOR * spans):
                found[i] = found[i] + shared[i, lane, other]
    return found


@printed
def combine_text(config: CombineConfig | None = None) -> cute.Compiled:
    """Trace the kernel ``@combine`` and its host function ``@launch(O, L, out, lse)``."""
    c = config or DEFAULT
    parts = cute.Tensor[number(c.partial), "(?,?,?):(1,?{div=8},?{div=8})", "align<16>"]
    logs = cute.Tensor[cute.Float32, "(?,?):(1,?)"]
    out = cute.Tensor[number(c.element), "(?,?,?,?):(?{div=8},1,?{div=8},?{div=8})", "align<16>"]
    lse = cute.Tensor[cute.Float32, "(?,?,?):(?,?,?)"] if c.lse else None
    return cute.trace(launch, parts, logs, out, lse, config=c)


# --------------------------------------------------------------------------------------------------- merges in place


@cute.jit
def launch_pair(
    out: cute.Tensor,
    lse: cute.Tensor,
    other: cute.Tensor,
    other_lse: cute.Tensor,
    config: cute.Constexpr[CombineConfig] = DEFAULT,
):
    """Launch one warp per row. ``out`` and ``other`` are (rows, elements), their log-sum-exps (rows,)."""
    assert out.shape[0] == other.shape[0], "out and other must have the same number of rows"
    merge(out, lse, other, other_lse, config).launch(
        grid=cute.ceil_div(out.shape[0], _WARPS), block=32 * _WARPS, pdl=True
    )


@cute.kernel(name="merge")
def merge(
    out: cute.Tensor,
    lse: cute.Tensor,
    other: cute.Tensor,
    other_lse: cute.Tensor,
    config: cute.Constexpr[CombineConfig],
):
    """Add another partial result to this warp's row, in place."""
    cute.arch.griddepcontrol_wait()
    cute.arch.griddepcontrol_launch_dependents()
    lane = cute.arch.lane_idx()
    row = cute.arch.block_idx().x * _WARPS + cute.arch.warp_idx()
    if row < out.shape[0]:
        logs = [lse[row], other_lse[row]]
        most = cute.arch.fmax(logs[0], logs[1])
        weights = [_power(log - most) for log in logs]
        total = weights[0] + weights[1]
        total = cute.Float32(1.0) if most == float("-inf") else total
        weights = [weight / total for weight in weights]
        for i in cute.range_constexpr(-(-config.head // 128)):
            if (i * 32 + lane) * _VECTOR < out.shape[1]:
                target = cute.local_tile(out[row, None], (_VECTOR,), (i * 32 + lane,))
                mine, theirs = (cute.make_rmem_tensor(_VECTOR, out.element_type) for _ in range(2))
                cute.autovec_copy(target, mine)
                cute.autovec_copy(cute.local_tile(other[row, None], (_VECTOR,), (i * 32 + lane,)), theirs)
                for j in cute.range_constexpr(_VECTOR):
                    sum_ = weights[0] * mine[j].to(cute.Float32)
                    mine[j] = cute.math.fma(weights[1], theirs[j].to(cute.Float32), sum_).to(out.element_type)
                cute.autovec_copy(mine, target)
        cute.arch.sync_warp()  # all lanes have read the log-sum-exp
        if lane == 0:
            lse[row] = float("-inf") if most == float("-inf") else most + cute.math.log(total)


@printed
def merge_text(config: CombineConfig | None = None) -> cute.Compiled:
    """Trace the kernel ``@merge`` and its host function ``@launch_pair(out, lse, other, other_lse)``."""
    c = config or DEFAULT
    matrix = cute.Tensor[number(c.element), "(?,?):(?{div=8},1)", "align<16>"]
    logs = cute.Tensor[cute.Float32, "?:1"]
    return cute.trace(launch_pair, matrix, logs, matrix, logs, config=c)
