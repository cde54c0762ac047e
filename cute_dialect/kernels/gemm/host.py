"""Host side of a Hopper GEMM: the launch arguments of a configuration, their checks, and the tensor maps."""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false

from typing import Any

import cute_dialect.lang as cute
from cute_dialect.kernels.common.elements import factors, number
from cute_dialect.kernels.epilogue.combination import grouped
from cute_dialect.kernels.epilogue.graph import Output, parts_of
from cute_dialect.kernels.gemm.config import BITS, GemmConfig, SplitConfig, part_of
from cute_dialect.kernels.gemm.epilogue_store import order_of_digits, swizzle_of
from cute_dialect.kernels.gemm.operands import PLACES, check_extents
from cute_dialect.lang import hopper, utils
from cute_dialect.lang.nvgpu import cpasync, tcgen05


def elements_of(c: GemmConfig) -> tuple[str, str, str]:
    """Return the types of A, B and C."""
    return *factors(c.element), c.output


def layouts_of(c: GemmConfig) -> list[str]:
    """Return the layouts of A, B and C that TMA can access, whose strides are multiples of 16 bytes.

    >>> layouts_of(GemmConfig(major_b="n"))
    ['(?,?):(?{div=8},1)', '(?,?):(1,?{div=8})', '(?,?):(?{div=8},1)']
    """
    found: list[str] = []
    for name, element, row_major in zip("ABC", elements_of(c), _row_major(c)):
        if name == "C" and c.epilogue.split:
            found.append(_layout_of_digits(c))
            continue
        d = "?" if name == "C" and c.direct else f"?{{div={128 // BITS[element]}}}"
        strides = f"{d},1" if row_major else f"1,{d}"
        found.append(f"(?,?,?):({strides},{d})" if c.batch else f"(?,?):({strides})")
    return found


def _layout_of_digits(c: GemmConfig) -> str:
    """Return the layout of a reshaped C, whose rows, columns and batch are several modes each."""
    rows, columns, matrices = parts_of(c.epilogue.split)
    shape = (*rows, *columns, *matrices)
    d = "?" if c.direct else f"?{{div={128 // BITS[c.output]}}}"
    strides = [d] * len(shape)
    if not c.direct:
        strides[len(rows)] = "1"
    return f"({','.join(shape)}):({','.join(strides)})"


def with_modes(c: GemmConfig, C: Any) -> Any:
    """Group the modes of a reshaped C into one mode each for rows, columns and batch."""
    return C if not c.epilogue.split else grouped(Output(0, batch=c.batch, split=c.epilogue.split), C)


def arguments_of(config: GemmConfig | SplitConfig) -> dict[str, Any]:
    """Return the launch arguments after C and their annotations.

    >>> list(arguments_of(GemmConfig(stream_k=True)))
    ['workspace', 'flags']
    """
    split = isinstance(config, SplitConfig)
    c = config.base if split else config
    found: dict[str, Any] = {}
    if split or c.stream_k:
        found["workspace"] = cute.Tensor[cute.Float32, "?:1", "align<16>"]
        found["counters" if split else "flags"] = cute.Tensor[cute.Int32, "?:1"]
    if c.scaled:
        found |= {name: cute.Tensor[number(c.scales), "(?,?):(?,?)"] for name in ("scale_a", "scale_b")}
    found |= c.epilogue.arguments(
        c.output, batch=c.batch, row_major=c.major_c == "n", vectors=not c.direct, array=c.array
    )
    return found | ({"places": PLACES} if c.array else {})


def check_arguments(config: Any, A: Any, B: Any, C: Any, behind: dict[str, Any]) -> None:
    """Raise ValueError for arguments that do not suit the configuration, and emit runtime assertions on the shapes."""
    c = config.base if isinstance(config, SplitConfig) else config
    wanted, given = list(arguments_of(config)), [name for name, value in behind.items() if value is not None]
    if wanted != given:
        raise ValueError(
            f"launch: the arguments after C must be {', '.join(wanted) or 'none'}; got {', '.join(given) or 'none'}"
        )
    for name, x, element, row_major in zip("ABC", (A, B, C), elements_of(c), _row_major(c)):
        kinds = (cute.Float32, cute.TFloat32) if element == "tf32" else (number(element),)
        if name == "C" and c.epilogue.split:
            continue
        if x.element_type not in kinds or cute.rank(x) != (3 if c.batch else 2):
            raise ValueError(
                f"launch: {name} must be a {'batch of matrices' if c.batch else 'matrix'} of {element}, got {x}"
            )
        if x.leading_dim != row_major:
            raise ValueError(f"launch: {name} must be contiguous along mode {int(row_major)}, got {x}")
    check_extents(A, B, C, c.epilogue.half, behind["places"])
    if c.scaled:
        blocks = cute.ceil_div(A.shape[1], 128)
        of_b = B.shape[0] if c.scaled_columns else cute.ceil_div(B.shape[0], 128)
        each = "column" if c.scaled_columns else "128 columns"
        for name, rows in (("scale_a", A.shape[0]), ("scale_b", of_b)):
            scales = behind[name]
            assert scales.shape[0] == rows, f"{name} must have one row per row of A, or per {each} of B"
            assert scales.shape[1] == blocks, f"{name} must have one column per 128 of K"


def _row_major(c: GemmConfig) -> tuple[bool, bool, bool]:
    return c.major_a == "k", c.major_b == "k", c.major_c == "n"


def as_read(c: GemmConfig, A: Any, B: Any, C: Any) -> Any:
    """Return the matrices as the tensor maps see them.

    TMA rounds f32 to tf32 on load. A kernel with a fallback takes any layout; its tensor maps assume those that TMA can
    access.
    """
    if c.element == "tf32":
        A, B = (cute.recast_tensor(x, cute.TFloat32) if x.element_type is cute.Float32 else x for x in (A, B))
    if c.fallback:
        A, B, C = (cute.promise(x, layout, align=16).view for x, layout in zip((A, B, C), layouts_of(c)))
    return A, B, C


def ring_of(matrix: Any, tile: tuple[int, int], c: GemmConfig) -> Any:
    """Return the shared-memory layout (rows, K, stages) of an operand's stages: 128-byte lines, swizzled."""
    order = utils.LayoutEnum.from_tensor(matrix)
    return hopper.make_smem_layout_a(order, (tile[0], None, tile[1]), matrix.element_type, c.stages)


def load_map(
    c: GemmConfig, matrix: Any, tile: tuple[int, int], blocks: int, group: tcgen05.CtaGroup = tcgen05.CtaGroup.ONE
) -> Any:
    """Return the TMA atom that loads tiles of a matrix, or one of ``blocks`` multicast slices, and its coordinate
    tensor. With ``CtaGroup.TWO`` the loads of both blocks of a pair signal the even block.
    """
    part = part_of(tile, blocks, k_major=matrix.leading_dim == 1, bits=c.bits)
    op = cpasync.G2SMulticast() if blocks > 1 else cpasync.G2S(group)
    return _map(c, op, matrix, ring_of(matrix, part, c), part)


def store_widths(config: GemmConfig | SplitConfig) -> list[int]:
    """Return the distinct chunk widths of C, in columns.

    >>> store_widths(GemmConfig(tile=(128, 176, 64)))
    [64, 32, 16]
    """
    widths = (config.piece,) if isinstance(config, SplitConfig) else config.widths
    return list(dict.fromkeys(widths))


def store_map(c: GemmConfig, C: Any, width: int) -> Any:
    """Return the TMA atom that stores a chunk of ``width`` columns, and its coordinate tensor.

    The box is a warp's 16 rows, or 128 bytes of each column if C has contiguous columns.
    """
    by_rows, rows, lines = c.major_c == "n", 16 // len(c.lanes.boxes), 1024 // BITS[c.output]
    box, strides = ((rows, width), (width, 1)) if by_rows else ((lines, width), (1, lines))
    layout = cute.make_layout(box, stride=strides)
    swizzle = swizzle_of(width * BITS[c.output] // 8 if by_rows else 128)
    if c.epilogue.split:  # the first modes of rows and of columns lead, as in a matrix
        order = order_of_digits(c.epilogue.split)
        flat = cute.flatten(C)
        C = cute.make_tensor(C.iterator, cute.make_layout(
            tuple([flat.shape[i] for i in order]), stride=tuple([flat.stride[i] for i in order])
        ))  # fmt: skip
        tiler = (*box, *(1,) * (len(order) - 2))
        layout = cute.append_ones(layout, len(tiler))
        stage = cute.make_composed_layout(swizzle, 0, layout)
        return cpasync.make_tiled_tma_atom(cpasync.S2G(), C, stage, tiler, l2_promotion=128)
    return _atom(c, cpasync.S2G(), C, layout, swizzle, box)


def beside_maps(config: GemmConfig | SplitConfig, addends: Any) -> dict[int, dict[int, Any]]:
    """Return the TMA atoms that store chunks of the epilogue's extra outputs, by output index and chunk width."""
    if isinstance(config, SplitConfig):
        return {}
    graph, given = config.epilogue.graph, addends.in_order()
    outputs = {i: given[len(graph.inputs) + i - 1] for i in config.beside}
    return {i: {width: store_map(config, x, width) for width in store_widths(config)} for i, x in outputs.items()}


def _map(c: GemmConfig, op: Any, matrix: Any, stages: Any, tile: tuple[int, int]) -> Any:
    return _atom(c, op, matrix, cute.slice_(stages.outer, (None, None, 0)), stages.inner, tile)


def _atom(c: GemmConfig, op: Any, matrix: Any, layout: Any, swizzle: Any, tile: tuple[int, int]) -> Any:
    tiler = (*tile, *(1,) * (cute.rank(matrix) - 2)) if c.batch else tile
    box = cute.append_ones(layout, len(tiler))
    stage = cute.make_composed_layout(swizzle, 0, box)
    return cpasync.make_tiled_tma_atom(op, matrix, stage, tiler, l2_promotion=128)
