"""Elementwise ``C = A + B`` over row-major matrices, as text.

The file holds two kernels and the host function that launches them: ``@add`` assumes nothing, ``@add_v`` takes rows and
pointers that 128-bit accesses can use.  A tile wholly inside the matrix is moved without flags.

>>> text = elementwise_add("f16")
>>> '!atom = !cute_nvgpu.atom.universal_copy<f16>' in text
True
"""

from __future__ import annotations

from typing import NamedTuple

BITS = {"f32": 32, "f16": 16, "bf16": 16}
"""Element types the kernel is made for, and their bits."""


class Tile(NamedTuple):
    """The tile of a block, ``(rows, columns)``: how its threads and a thread's values lie, both row-major."""

    threads: tuple[int, int] = (4, 32)
    values: tuple[int, int] = (4, 4)

    @property
    def shape(self) -> tuple[int, int]:
        """The tile of one block, ``(rows, columns)`` elements."""
        return self.threads[0] * self.values[0], self.threads[1] * self.values[1]

    def layout_tv(self) -> str:
        """Return (thread, value) -> column-major index in the tile.

        >>> Tile().layout_tv()
        '((32,4),(4,4)):((64,4),(16,1))'
        """
        rows = self.shape[0]
        (tm, tn), (vm, vn) = self.threads, self.values
        thread = [(tn, rows * vn), (tm, vm)]
        value = [(vn, rows), (vm, 1)]
        shapes, strides = zip(_modes(thread), _modes(value))
        return f"({','.join(shapes)}):({','.join(strides)})"


def _modes(pairs: list[tuple[int, int]]) -> tuple[str, str]:
    """Shape and stride text of a mode; extents 1 are left out."""
    kept = [p for p in pairs if p[0] != 1] or [(1, 0)]
    if len(kept) == 1:
        return str(kept[0][0]), str(kept[0][1])
    return f"({kept[0][0]},{kept[1][0]})", f"({kept[0][1]},{kept[1][1]})"


def seed_tile(element: str) -> Tile:
    """Return the tile of threads (4,32), values (4, 128 bits): 16 rows a block, four vectors a thread."""
    return Tile((4, 32), (4, 128 // BITS[element]))


def streaming_tile(element: str) -> Tile:
    """Return the tile of one vector a thread, one row a block: what streams fastest."""
    return Tile((1, 256), (1, 128 // BITS[element]))


def elementwise_add(element: str = "f32", tile: Tile | None = None, *, rows_first: bool = True) -> str:
    """Return the file for elements ``f32``, ``f16`` or ``bf16``.

    ``rows_first``: consecutive blocks walk down the rows (the order of the divided tensor's modes), else along them.
    Raises ValueError for other elements.
    """
    if element not in BITS:
        raise ValueError(f"expected an element type of {', '.join(BITS)}, got '{element}'")
    tile = seed_tile(element) if tile is None else tile
    vector = 128 // BITS[element]
    kernels = (
        _kernel("add", "mat", element, tile, rows_first) + "\n" + _kernel("add_v", "vec", element, tile, rows_first)
    )
    return (
        _head(element, tile)
        + _aliases("mat", element, tile, 1)
        + _aliases("vec", element, tile, vector)
        + "\nmodule attributes {gpu.container_module} {\n  gpu.module @kernels {\n"
        + kernels
        + "  }\n\n"
        + _host(tile)
        + "}\n"
    )


def _threads(tile: Tile) -> int:
    return tile.threads[0] * tile.threads[1]


def _div(n: int) -> str:
    return "?" if n == 1 else f"?{{div={n}}}"


def _head(element: str, tile: Tile) -> str:
    m, n = tile.shape
    (vm, vn), vector = tile.values, 128 // BITS[element]
    ids = "(0,1@1)" if vm == 1 else "(0,(1@1,1@0))"
    shape = _value_shape(tile)
    registers = "(0,1)" if vm == 1 else f"(0,(1,{vn}))"
    n_bytes = min(32, vm * vn * BITS[element] // 8)
    row = f"((1,{vn}),1,1):((0,1),0,0)" if vm == 1 else f"(1,{vn},1,1):(0,1,0,0)"
    row_ids = "" if vm == 1 else f'!ids_row = !cute.coord_tensor<"(?,{_div(vn)})", "(1,{vn},1,1):(0,1@1,0,0)">\n'
    return f"""\
// C = A + B over row-major matrices of {element}, any shape, any row stride.
//
// A block of {_threads(tile)} threads takes a tile of {m} x {n} elements; a thread takes {vm} x {vn} of them.  @add assumes nothing about
// rows.  @add_v takes row strides that are multiples of {vector} and pointers aligned to 16 bytes: inside the matrix every access
// moves 128 bits.  The launch takes @add_v when the arguments allow it.

!tile = !cute.tile<"[{m}:1;{n}:1]">
!atom = !cute_nvgpu.atom.universal_copy<{element}>
!copy = !cute.tiled_copy<!atom, layout_copy_tv = <"{tile.layout_tv()}">, tiler_mn = <"[{m}:1;{n}:1]">>

// Coordinates: of the matrix, tiled, of a block, of a thread's values.
!ids = !cute.coord_tensor<"(0,0)", "(?,?):(1@0,1@1)">
!ids_tiled = !cute.coord_tensor<"(0,0)", "(({m},{n}),(?,?)):((1@0,1@1),({m}@0,{n}@1))">
!ids_block = !cute.coord_tensor<"({_div(m)},{_div(n)})", "({m},{n}):(1@0,1@1)">
!ids_thread = !cute.coord_tensor<"({_div(vm)},{_div(vn)})", "({shape},1,1):({ids},0,0)">
{row_ids}
// Registers: a thread's values; a row of them, and a flag for each.
!regs = !cute.memref<{element}, rmem, align<{n_bytes}>, "({shape},1,1):({registers},0,0)">
!row_regs = !cute.memref<{element}, rmem, align<16>, "{row}">
!row_flags = !cute.memref<i1, rmem, align<{vn}>, "{row}">
"""  # noqa: E501


def _value_shape(tile: Tile) -> str:
    vm, vn = tile.values
    return f"(1,{vn})" if vm == 1 else f"(1,({vn},{vm}))"


def _aliases(name: str, element: str, tile: Tile, div: int) -> str:
    m, n = tile.shape
    ld, step = _div(div), _div(div * m)
    stride = "(0,1)" if tile.values[0] == 1 else f"(0,(1,{ld}))"
    align = "" if div == 1 else "align<16>, "
    title = "anything" if div == 1 else f"rows of whole vectors of {div}"
    also_row = ", a row of these" if tile.values[0] != 1 else ""
    memref = f"!cute.memref<{element}, gmem, {align}"
    row = "" if tile.values[0] == 1 else f'!{name}_row = {memref}"(1,{tile.values[1]},1,1):(0,1,0,0)">\n'
    return f"""
// A matrix ({title}): itself, tiled, a block's tile, a thread's values{also_row}.
!{name} = {memref}"(?,?):({ld},1)">
!{name}_tiled = {memref}"(({m},{n}),(?,?)):(({ld},1),({step},{n}))">
!{name}_block = {memref}"({m},{n}):({ld},1)">
!{name}_thread = {memref}"({_value_shape(tile)},1,1):({stride},0,0)">
{row}"""


def _kernel(name: str, t: str, element: str, tile: Tile, rows_first: bool) -> str:
    m, n = tile.shape
    n_values = tile.values[0] * tile.values[1]
    ld = "?" if t == "mat" else f"?{{div={128 // BITS[element]}}}"
    crd = '!cute.coord<"((_,_),?)">'
    where = f"%where = cute.make_coord(%bid) : (i32) -> {crd}"
    if not rows_first:
        crd = '!cute.coord<"((_,_),(?,?))">'
        tiled = f'!cute.layout<"(({m},{n}),(?,?)):((1@0,1@1),({m}@0,{n}@1))">'
        where = f"""%lX = cute.get_layout(%gX) : !ids_tiled
      %down, %along = cute.get_scalars<{{only_dynamic}}> (%lX) : {tiled}
      %bm = arith.divui %bid, %along : i32
      %bn = arith.remui %bid, %along : i32
      %where = cute.make_coord(%bm, %bn) : (i32, i32) -> {crd}"""
    return f"""\
    gpu.func @{name}(%mA: !{t}, %mB: !{t}, %mC: !{t}) kernel attributes {{known_block_size = array<i32: {_threads(tile)}, 1, 1>}} {{
      // Tile the matrices and the tensor of their coordinates.
      %tiler = cute.static : !tile
      %gA = cute.zipped_divide(%mA, %tiler) : (!{t}, !tile) -> !{t}_tiled
      %gB = cute.zipped_divide(%mB, %tiler) : (!{t}, !tile) -> !{t}_tiled
      %gC = cute.zipped_divide(%mC, %tiler) : (!{t}, !tile) -> !{t}_tiled
      %lC = cute.get_layout(%mC) : !{t}
      %mn = cute.get_shape(%lC) : !cute.layout<"(?,?):({ld},1)"> -> !cute.shape<"(?,?)">
      %identity = cute.make_identity_layout(%mn) : !cute.shape<"(?,?)"> -> !cute.layout<"(?,?):(1@0,1@1)">
      %origin = cute.static : !cute.int_tuple<"(0,0)">
      %mX = cute.make_view(%origin, %identity) : !ids
      %gX = cute.zipped_divide(%mX, %tiler) : (!ids, !tile) -> !ids_tiled

      // This block's tile.
      %bid = nvvm.read.ptx.sreg.ctaid.x : i32
      %tid = nvvm.read.ptx.sreg.tid.x range <i32, 0, {_threads(tile)}> : i32
      {where}
      %bA = cute.slice(%gA, %where) : !{t}_tiled, {crd}
      %bB = cute.slice(%gB, %where) : !{t}_tiled, {crd}
      %bC = cute.slice(%gC, %where) : !{t}_tiled, {crd}
      %bX = cute.slice(%gX, %where) : !ids_tiled, {crd}

      // This thread's values, and registers for them.
      %atom = cute.atom() : !atom
      %copy = cute.make_tiled_copy(%atom) : !copy
      %thr = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">
      %tA = cute.tiled.copy.partition_S(%copy, %bA, %thr) : (!copy, !{t}_block, !cute.coord<"?">) -> !{t}_thread
      %tB = cute.tiled.copy.partition_S(%copy, %bB, %thr) : (!copy, !{t}_block, !cute.coord<"?">) -> !{t}_thread
      %tC = cute.tiled.copy.partition_D(%copy, %bC, %thr) : (!copy, !{t}_block, !cute.coord<"?">) -> !{t}_thread
      %tX = cute.tiled.copy.partition_S(%copy, %bX, %thr) : (!copy, !ids_block, !cute.coord<"?">) -> !ids_thread
      %fA = cute.make_fragment_like(%tA) : !{t}_thread -> !regs
      %fB = cute.make_fragment_like(%tB) : !{t}_thread -> !regs
      %fC = cute.make_fragment_like(%tC) : !{t}_thread -> !regs

      // If the last coordinate of the tile lies inside the matrix, all do.
      %corner = cute.static : !cute.coord<"({m - 1},{n - 1})">
      %last = cute.memref.load(%bX, %corner) : (!ids_block, !cute.coord<"({m - 1},{n - 1})">) -> !cute.int_tuple<"(?,?)">
      %inside = cute.elem_less(%last, %mn) : (!cute.int_tuple<"(?,?)">, !cute.shape<"(?,?)">) -> i1
      scf.if %inside {{
        cute.copy(%atom, %tA, %fA) : (!atom, !{t}_thread, !regs) -> ()
        cute.copy(%atom, %tB, %fB) : (!atom, !{t}_thread, !regs) -> ()
        %a = cute.memref.load_vec %fA : !regs
        %b = cute.memref.load_vec %fB : !regs
        %c = arith.addf %a, %b : vector<{n_values}x{element}>
        cute.memref.store_vec %c, %fC : !regs
        cute.copy(%atom, %fC, %tC) : (!atom, !regs, !{t}_thread) -> ()
      }} else {{
{_edge(t, element, tile)}      }}
      gpu.return
    }}
"""  # noqa: E501


def _edge(t: str, element: str, tile: Tile) -> str:
    """Go row by row over the thread's values; a thread with one row has no loop."""
    vm, vn = tile.values
    crd = '!cute.coord<"((_,(_,?)),_,_)">'
    if vm == 1:
        body = _edge_row(t, element, vn, "%tA", "%tB", "%tC", "%tX", f"!{t}_thread", "!ids_thread", "        ")
        return "        // At the edge each value has a flag: is its coordinate less than the shape?\n" + body
    row = _edge_row(t, element, vn, "%rA", "%rB", "%rC", "%rX", f"!{t}_row", "!ids_row", "          ")
    return f"""\
        // At the edge, row by row, each value has a flag: is its coordinate less than the shape?
        %c0 = arith.constant 0 : i32
        %c1 = arith.constant 1 : i32
        %rows = arith.constant {vm} : i32
        scf.for %r = %c0 to %rows step %c1 : i32 {{
          %row = cute.make_coord(%r) : (i32) -> {crd}
          %rA = cute.slice(%tA, %row) : !{t}_thread, {crd}
          %rB = cute.slice(%tB, %row) : !{t}_thread, {crd}
          %rC = cute.slice(%tC, %row) : !{t}_thread, {crd}
          %rX = cute.slice(%tX, %row) : !ids_thread, {crd}
{row}        }}
"""


def _edge_row(t: str, element: str, n: int, a: str, b: str, c: str, x: str, part: str, ids: str, pad: str) -> str:
    lines = f"""\
%fP = cute.make_fragment_like({x}) [i1] : {ids} -> !row_flags
%eA = cute.make_fragment_like({a}) : {part} -> !row_regs
%eB = cute.make_fragment_like({b}) : {part} -> !row_regs
%eC = cute.make_fragment_like({c}) : {part} -> !row_regs
%i0 = arith.constant 0 : i32
%i1 = arith.constant 1 : i32
%in = arith.constant {n} : i32
scf.for %i = %i0 to %in step %i1 : i32 {{
  %ci = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
  %at = cute.memref.load({x}, %ci) : ({ids}, !cute.coord<"?">) -> !cute.int_tuple<"(?,?)">
  %flag = cute.elem_less(%at, %mn) : (!cute.int_tuple<"(?,?)">, !cute.shape<"(?,?)">) -> i1
  cute.memref.store(%fP, %ci, %flag) : (!row_flags, !cute.coord<"?">, i1) -> ()
}}
cute.copy(%atom, {a}, %eA, pred = %fP) : (!atom, {part}, !row_regs, !row_flags) -> ()
cute.copy(%atom, {b}, %eB, pred = %fP) : (!atom, {part}, !row_regs, !row_flags) -> ()
%a = cute.memref.load_vec %eA : !row_regs
%b = cute.memref.load_vec %eB : !row_regs
%c = arith.addf %a, %b : vector<{n}x{element}>
cute.memref.store_vec %c, %eC : !row_regs
cute.copy(%atom, %eC, {c}, pred = %fP) : (!atom, !row_regs, {part}, !row_flags) -> ()
"""
    return "".join(f"{pad}{line}\n" for line in lines.splitlines())


def _host(tile: Tile) -> str:
    tv = tile.layout_tv()
    shape, layout = '!cute.shape<"(?,?)">', '!cute.layout<"(?,?):(?,1)">'
    return f"""\
  // One block a tile.
  func.func @launch(%mA: !mat, %mB: !mat, %mC: !mat) {{
    %lA = cute.get_layout(%mA) : !mat
    %lB = cute.get_layout(%mB) : !mat
    %lC = cute.get_layout(%mC) : !mat
    %sA = cute.get_shape(%lA) : {layout} -> {shape}
    %sB = cute.get_shape(%lB) : {layout} -> {shape}
    %sC = cute.get_shape(%lC) : {layout} -> {shape}
    %sameA = cute.equal(%sA, %sC) : ({shape}, {shape}) -> i1
    cf.assert %sameA, "A and C must have the same shape"
    %sameB = cute.equal(%sB, %sC) : ({shape}, {shape}) -> i1
    cf.assert %sameB, "B and C must have the same shape"
    %tiler = cute.static : !tile
    %gC = cute.zipped_divide(%mC, %tiler) : (!mat, !tile) -> !mat_tiled
    %tiles = cute.size<[1]> (%gC) : (!mat_tiled) -> !cute.int_tuple<"?">
    %grid = cute.get_scalars (%tiles) : !cute.int_tuple<"?">
    %tv = cute.static : !cute.layout<"{tv}">
    %threads = cute.size<[0]> (%tv) : (!cute.layout<"{tv}">) -> !cute.int_tuple<"{_threads(tile)}">
    %block = cute.get_scalars (%threads) : !cute.int_tuple<"{_threads(tile)}">
    %one = arith.constant 1 : i32
    gpu.launch_func @kernels::@add blocks in (%grid, %one, %one) threads in (%block, %one, %one) : i32
      args(%mA : !mat, %mB : !mat, %mC : !mat) {{cute.variants = [@kernels::@add_v]}}
    return
  }}
"""
