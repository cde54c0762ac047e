"""Kernels of one block that execute one ``cute.gemm`` of tcgen05, or copy through tensor memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import i8, i32
from xdsl.ir import Attribute

from cute_dialect.algebra.evaluation import evaluate
from cute_dialect.algebra.layout import recast_layout
from cute_dialect.algebra.leaf import Dyn
from cute_dialect.algebra.text import to_text
from cute_dialect.algebra.tiling import tile_to_shape
from cute_dialect.algebra.trees import column_major
from cute_dialect.algebra.values import ComposedLayout, IntTuple, Layout, Stride, Swizzle, layout_modes, raw_layout
from cute_dialect.arch.descriptors import pointer_swizzle, smem_tile
from cute_dialect.arch.tcgen05_kinds import SCALED_KINDS, kind_of_types
from cute_dialect.arch.tmem import strides
from cute_dialect.cute_nvgpu.sparse import MakeFragmentEOp, PartitionShapeEOp
from cute_dialect.cute_nvgpu.tcgen05 import Tcgen05AtomType, Tcgen05MmaType
from cute_dialect.cute_nvgpu.tcgen05_sparse import Tcgen05MmaSpType
from cute_dialect.cute_nvgpu.tiled_mma import MakeFragmentCOp, MmaKey, PartitionAOp, PartitionBOp, TiledMmaType
from cute_dialect.cute_nvgpu.tmem import MakeTmemCopyOp, TmemCopy, TmemCopyType, TmemLoadType, TmemStoreType
from cute_dialect.dialect.memory import rmem_type
from cute_dialect.dialect.memory_types import MemRef, MemRefType, PtrType, element_bits, ptr
from cute_dialect.dialect.tiled import PartitionDOp, PartitionSOp
from cute_dialect.dialect.types import CoordType, ShapeType
from cute_dialect.spaces import AddressSpace

POINTER = "!cute.ptr<f32, tmem, align<128>>"
SLOT = "!cute.ptr<i32, smem>"
SLOTS = '!cute.memref<i32, smem, "1:0">'
BAR = "!cute.ptr<i64, smem>"
BARS = '!cute.memref<i64, smem, "1:0">'
BARRIER = (
    'cute_nvgpu.arch.tcgen05_fence() {kind = "before"} : () -> ()\ncute_nvgpu.arch.barrier() : () -> ()\n'
    'cute_nvgpu.arch.tcgen05_fence() {kind = "after"} : () -> ()\n'
)
THREAD = CoordType(0)
ANY = CoordType(Dyn())


def memref(
    element: Attribute, space: str, layout: Layout, align: int = 0, swizzle: Swizzle | None = None
) -> MemRefType:
    """Return the type of a tensor."""
    return MemRefType(MemRef(ptr(element, space, align, swizzle), layout))


def prologue(columns: int) -> str:
    """Return the start of a kernel of 128 threads: warp 0 allocates tensor memory, and ``%p`` is its address."""
    return (
        "%c0 = arith.constant 0 : i32\n%c1 = arith.constant 1 : i32\n"
        "%tid = nvvm.read.ptx.sreg.tid.x range <i32, 0, 128> : i32\n"
        '%thread = cute.make_coord(%tid) : (i32) -> !cute.coord<"?">\n'
        f"%slots = cute.memref.alloc_smem() : {SLOTS}\n%slot = cute.get_iter(%slots) : {SLOTS}\n"
        "%warp = cute_nvgpu.arch.warp_id() : () -> i32\n%allocates = arith.cmpi eq, %warp, %c0 : i32\n"
        f"scf.if %allocates {{\n  cute_nvgpu.arch.tmem_alloc(%slot) {{columns = {columns} : i32}} : ({SLOT}) -> ()\n"
        "  cute_nvgpu.arch.tmem_relinquish() : () -> ()\n}\n"
        f"{BARRIER}"
        f"%p = cute_nvgpu.arch.tmem_pointer(%slot) : ({SLOT}) -> {POINTER}\n"
    )


def epilogue(columns: int) -> str:
    """Return the end of the kernel, which frees the columns."""
    return (
        f"{BARRIER}scf.if %allocates {{\n"
        f"  cute_nvgpu.arch.tmem_dealloc(%p) {{columns = {columns} : i32}} : ({POINTER}) -> ()\n}}\n"
    )


def module(parameters: Sequence[tuple[str, MemRefType]], body: str) -> str:
    """Return a module with the kernel ``@k`` of 128 threads."""
    names = ", ".join(f"%{name}: {t}" for name, t in parameters)
    return (
        "module attributes {gpu.container_module} {\ngpu.module @kernels {\n"
        f"gpu.func @k({names}) kernel attributes {{known_block_size = array<i32: 128, 1, 1>}} {{\n"
        f"{body}gpu.return\n}}\n}}\n}}\n"
    )


def allocation(columns: int) -> int:
    """Return the number of columns to allocate."""
    return max(32, 1 << (columns - 1).bit_length())


@dataclass(frozen=True)
class Gemm:
    """``D = A * B^T`` of one block.

    Args:
        types: element types of D, A and B.
        shape: M, N, and the number of K steps of the instruction.
        tiles: instruction tiles along M and N.
        majors: contiguous index of A and B.
        widths: swizzles of A and B, in bytes.
        load: shape and repetitions of the loads of the accumulator.
        negate: operands that are negated.
        ws: the MMA keeps B in a buffer.
        sparse: A is sparse.  Its metadata are a matrix of the words of tensor memory, (128, columns).
        scales: kind, type of the factors and elements along K that share one; their columns follow the metadata.
    """

    types: tuple[Attribute, Attribute, Attribute]
    shape: tuple[int, int, int]
    tiles: tuple[int, int] = (1, 1)
    majors: tuple[str, str] = ("k", "k")
    widths: tuple[int, int] = (128, 128)
    load: tuple[str, int] = ("32x32b", 8)
    negate: str = ""
    ws: bool = False
    sparse: bool = False
    scales: tuple[str, str, int] | None = None

    @property
    def depth(self) -> int:
        """K of the whole product."""
        return self.atom.row.shape_mnk[2] * self.shape[2]

    @property
    def atom(self) -> Tcgen05AtomType:
        """The atom."""
        d, a, b = self.types
        m, n, _ = self.shape
        kind, sf, vec = self.scales or ("", "", 0)
        depth = next((x.depth for x in SCALED_KINDS if x.name == kind), 0)
        k = (depth or kind_of_types((str(d), str(a), str(b))).depth) * (2 if self.sparse else 1)
        key = MmaKey((m, n, k), (d, a, b, d), AddressSpace.smem, self.majors, negate=self.negate)
        key = key._replace(kind=kind, sf=sf, vec=vec, ws=self.ws)
        return Tcgen05MmaSpType(key) if self.sparse else Tcgen05MmaType(key)

    @property
    def metadata(self) -> MemRefType:
        """The tensor E in tensor memory."""
        (part,) = PartitionShapeEOp.infer_types([self.mma, ShapeType((128 * self.tiles[0], 2 * self.shape[2]))], {})
        (fragment,) = MakeFragmentEOp.infer_types([self.mma, part], {})
        assert isinstance(fragment, MemRefType)
        return fragment

    @property
    def metadata_columns(self) -> int:
        """Columns of tensor memory of the metadata."""
        if not self.sparse:
            return 0
        atom = self.atom
        assert isinstance(atom, Tcgen05MmaSpType)
        return -(-self.shape[2] * atom.metadata_columns // 4) * 4 * self.tiles[0]

    @property
    def factor_columns(self) -> int:
        """Columns of tensor memory of the factors of A, of which there are as many for B."""
        if self.scales is None:
            return 0
        return -(-self.shape[2] * self.atom.factors_of("SFA")[1] // 4) * 4

    @property
    def factors(self) -> MemRefType:
        """The tensors SFA and SFB in tensor memory, of 128 rows each."""
        atom = self.atom
        _, count = atom.factors_of("SFA")
        tile, per_column = atom.factor_layout("SFA", 128), 4 // count
        columns = -(-self.shape[2] // per_column)
        rest = (self.shape[2], count) if columns == 1 else ((per_column, columns), (count, 16))
        layout = raw_layout((tile.shape, 1, rest[0]), (tile.stride, 0, rest[1]))
        return memref(atom.element("SFA"), "tmem", layout, 16)

    @property
    def mma(self) -> TiledMmaType:
        """The tiled MMA of one atom."""
        return TiledMmaType.of(self.atom, Layout((1, 1, 1), (0, 0, 0)))

    def extents(self) -> tuple[int, int, int]:
        """Return M, N and K of the whole product."""
        m, n, _ = self.shape
        return m * self.tiles[0], n * self.tiles[1], self.depth

    def parameters(self) -> list[tuple[str, MemRefType]]:
        """Return the parameters: A and B in their majors, and D, which is row-major."""
        m, n, k = self.extents()
        d, *_ = self.types
        held = [self._held(x) for x in "AB"]
        layouts = [
            Layout((x, y // self._packed), (y // self._packed, 1) if major == "k" else (1, x))
            for x, y, major in zip((m, n), (k // 2 if self.sparse else k, k), self.majors)
        ]
        n_words = self.metadata_columns + 2 * self.factor_columns
        words = [("E", memref(i32, "gmem", Layout((128, n_words), (n_words, 1)), 16))] if n_words else []
        return [
            *words,
            ("A", memref(held[0], "gmem", layouts[0], 16)),
            ("B", memref(held[1], "gmem", layouts[1], 16)),
            ("D", memref(d, "gmem", Layout((m, n), (n, 1)), 16)),
        ]

    @property
    def _packed(self) -> int:
        """Elements of A and B per element of shared memory."""
        return 2 if self.atom.is_packed else 1

    def _held(self, operand: str) -> Attribute:
        element = self.types["DAB".index(operand)]
        return i8 if element_bits(element) < 8 else element

    def _smem(self, operand: str) -> MemRefType:
        i = "AB".index(operand)
        m, n, k = self.extents()
        element = self._held(operand)
        bits = element_bits(element)
        extents = ((m, n)[i], (k // 2 if self.sparse and operand == "A" else k) // self._packed)
        if self.majors[i] == "mn" and bits == 32:
            plain = tile_to_shape(Layout((32, 4), (1, 32)), extents)
            assert isinstance(plain, Layout)
            return memref(element, "smem", plain, 1024, Swizzle(2, 5, 2))
        tile = smem_tile(self.majors[i], self.widths[i], bits, extents)
        plain = tile.outer if isinstance(tile, ComposedLayout) else tile
        return memref(element, "smem", plain, 1024, pointer_swizzle(self.widths[i]) if self.widths[i] else None)

    def _elements(self, t: MemRefType, operand: str) -> MemRefType:
        """Return the type of an operand in shared memory as elements of A or B, of which a byte may hold two."""
        if self._packed == 1:
            return t
        assert isinstance(t.layout, Layout)
        element = self.types["DAB".index(operand)]
        return memref(element, "smem", recast_layout(t.layout, 4, 8), 1024, t.data.ptr.swizzle)

    def text(self) -> str:
        """Return the module."""
        d, _, _ = self.types
        m, n, _ = self.shape
        atom, mma = self.atom, self.mma
        s_a, s_b = self._smem("A"), self._smem("B")
        v_a, v_b = (self._elements(t, x) for t, x in ((s_a, "A"), (s_b, "B")))
        (t_a,) = PartitionAOp.infer_types([mma, v_a, THREAD], {})
        (t_b,) = PartitionBOp.infer_types([mma, v_b, THREAD], {})
        _, columns, _ = self.extents()
        part = ShapeType(((m, n), *self.tiles))
        (fragment,) = MakeFragmentCOp.infer_types([mma, part], {})
        assert isinstance(fragment, MemRefType)
        acc = memref(d, "tmem", fragment.layout, 128)  # type: ignore[arg-type]
        pointer = f"!cute.ptr<{d}, tmem, align<128>>"
        columns = columns * self.tiles[0] if m == 128 else columns
        held = allocation(columns + self.metadata_columns + 2 * self.factor_columns)
        body = prologue(held)
        body += self._store_metadata(columns)
        gemm = f"cute.gemm(%mma, %acc, %tA, %tB) : ({mma}, {acc}, {t_a}, {t_b}) -> ()"
        if self.sparse:
            gemm = f"cute.sparse_gemm(%mma, %acc, %tA, %tB, %e) : ({mma}, {acc}, {t_a}, {t_b}, {self.metadata}) -> ()"
        if self.scales is not None:
            e = f", {self.metadata}" if self.sparse else ""
            gemm = (
                f"cute.scaled_gemm(%mma, %acc, %tA, %tB{', %e' if self.sparse else ''}, %sfa, %sfb) : ({mma}, {acc}, "
                f"{t_a}, {t_b}{e}, {self.factors}, {self.factors}) -> ()"
            )
        body += (
            f"%bars = cute.memref.alloc_smem() : {BARS}\n%bar = cute.get_iter(%bars) : {BARS}\n"
            f"%sA = cute.memref.alloc_smem() : {s_a}\n%sB = cute.memref.alloc_smem() : {s_b}\n"
        )
        for x, smem, (_, t) in zip("AB", (s_a, s_b), self.parameters()[-3:]):
            body += f"cute.cooperative_copy(%{x}, %s{x}, %thread) {{threads = 128 : i32}} : "
            body += f"({t}, {smem}, {ANY}) -> ()\n"
        body += (
            "%first = arith.cmpi eq, %tid, %c0 : i32\n"
            f"scf.if %first {{\n  cute_nvgpu.arch.mbarrier_init(%bar, %c1) : ({BAR}, i32) -> ()\n"
            "  cute_nvgpu.arch.fence_mbarrier_init() : () -> ()\n}\n"
            f"cute_nvgpu.arch.fence_proxy_async() : () -> ()\n{BARRIER}"
            f'%acc_layout = cute.static : !cute.layout<"{to_text(acc.layout)}">\n'
            f"%pd = cute.recast_iter(%p) : {POINTER} to {pointer}\n"
            f"%acc = cute.make_view(%pd, %acc_layout) : {acc}\n"
            "scf.if %first {\n"
            f"  %atom = cute.atom() : {atom}\n  %mma = cute.make_tiled_mma(%atom) : {mma}\n"
            '  %zero = cute.static : !cute.coord<"0">\n'
            f"{recast('%vA', '%sA', s_a, v_a)}{recast('%vB', '%sB', s_b, v_b)}"
            f'  %tA = cute.tiled.mma.partition_A(%mma, %vA, %zero) : ({mma}, {v_a}, !cute.coord<"0">) -> {t_a}\n'
            f'  %tB = cute.tiled.mma.partition_B(%mma, %vB, %zero) : ({mma}, {v_b}, !cute.coord<"0">) -> {t_b}\n'
            f"  {gemm}\n  cute_nvgpu.arch.tcgen05_commit(%bar) : ({BAR}) -> ()\n}}\n"
            f"cute_nvgpu.arch.mbarrier_wait(%bar, %c0) : ({BAR}, i32) -> ()\n"
            'cute_nvgpu.arch.tcgen05_fence() {kind = "after"} : () -> ()\n'
        )
        body += self._store(d, acc)
        return module(self.parameters(), body + epilogue(held))

    def _store_metadata(self, column: int) -> str:
        """Return the copy of the metadata and of the factors to tensor memory, from a column on."""
        n = self.metadata_columns + 2 * self.factor_columns
        if not n:
            return ""
        (_, given), *_ = self.parameters()
        words = memref(i32, "tmem", Layout((128, n), (65536, 1)), 16)
        store = TmemStoreType(TmemCopy(i32, "32x32b", 4))
        pointer = PtrType(MemRef(ptr(i32, "tmem", 128), Layout(1, 0)).ptr)
        start = PtrType(words.data.ptr)
        tensors = [("e", 0, self.metadata)] if self.sparse else []
        if self.scales is not None:
            at = self.metadata_columns
            tensors += [("sfa", at, self.factors), ("sfb", at + self.factor_columns, self.factors)]
        views = ""
        for name, at, t in tensors:
            views += (
                f'%{name}_o = cute.static : !cute.int_tuple<"{at}">\n'
                f'%{name}_p = cute.add_offset(%w_p, %{name}_o) : ({start}, !cute.int_tuple<"{at}">) -> {start}\n'
                f"%{name}_w = cute.recast_iter(%{name}_p) : {start} to {PtrType(t.data.ptr)}\n"
                f'%{name}_l = cute.static : !cute.layout<"{to_text(t.layout)}">\n'
                f"%{name} = cute.make_view(%{name}_w, %{name}_l) : {t}\n"
            )
        return (
            f"%pw = cute.recast_iter(%p) : {POINTER} to {pointer}\n{view('%w', '%pw', str(pointer), column, words)}"
            f"{copy_in(store, '%E', given, '%w', words, 'e')}{views}"
        )

    def _store(self, d: Attribute, acc: MemRefType) -> str:
        """Return the copy of the accumulator to D, tile by tile."""
        shape, times = self.load
        load = TmemLoadType(TmemCopy(d, shape, times, packed=element_bits(d) == 16))
        m, n, _ = self.shape
        assert isinstance(acc.layout, Layout)
        whole, *rest = layout_modes(acc.layout)
        tile = memref(d, "tmem", whole, 128)
        _, columns, _ = self.extents()
        out = memref(d, "gmem", Layout((m, n), (columns, 1)), 4)
        text = ""
        for i in range(self.tiles[0]):
            for j in range(self.tiles[1]):
                at = f"{i}_{j}"
                offset = cast("int", evaluate(i, rest[0])) + cast("int", evaluate(j, rest[1]))
                text += view(f"%t{at}", "%pd", f"!cute.ptr<{d}, tmem, align<128>>", offset, tile)
                text += view(f"%o{at}", "%pD", f"!cute.ptr<{d}, gmem, align<16>>", i * m * columns + j * n, out)
                text += copy_out(load, f"%t{at}", tile, f"%o{at}", out, at)
        t = self.parameters()[-1][1]
        return f"%pD = cute.get_iter(%D) : {t}\n{text}"


def recast(name: str, tensor: str, t: MemRefType, to: MemRefType) -> str:
    """Return a view of a tensor's memory as another tensor."""
    start, target = PtrType(t.data.ptr), PtrType(to.data.ptr)
    return (
        f"{name}_i = cute.get_iter({tensor}) : {t}\n{name}_p = cute.recast_iter({name}_i) : {start} to {target}\n"
        f'{name}_l = cute.static : !cute.layout<"{to_text(to.layout)}">\n'
        f"{name} = cute.make_view({name}_p, {name}_l) : {to}\n"
    )


def view(name: str, pointer: str, t: str, offset: int, of: MemRefType) -> str:
    """Return the view of type ``of``, without its alignment, ``offset`` elements after a pointer."""
    p = PtrType(of.data.ptr)
    return (
        f'{name}_o = cute.static : !cute.int_tuple<"{offset}">\n'
        f'{name}_p = cute.add_offset({pointer}, {name}_o) : ({t}, !cute.int_tuple<"{offset}">) -> {p}\n'
        f'{name}_l = cute.static : !cute.layout<"{to_text(of.layout)}">\n'
        f"{name} = cute.make_view({name}_p, {name}_l) : {of}\n"
    )


def _registers(part: Attribute) -> MemRefType:
    assert isinstance(part, MemRefType) and isinstance(part.layout, Layout)
    return rmem_type(part.element, coalesced(part.layout))


def coalesced(layout: Layout) -> Layout:
    """Return the compact layout of a shape, with stride 0 for extents of 1."""

    def still(s: IntTuple, d: Stride) -> Stride:
        if isinstance(s, tuple):
            return tuple([still(x, y) for x, y in zip(s, cast("tuple[Stride, ...]", d))])
        return 0 if s == 1 else d

    return raw_layout(layout.shape, still(layout.shape, column_major(layout.shape)))


def copy_out(load: TmemCopyType, source: str, tile: MemRefType, target: str, out: MemRefType, at: str) -> str:
    """Return the copy of a tile of tensor memory to global memory, through registers."""
    (tc,) = MakeTmemCopyOp.infer_types([load, tile], {})
    (t_s,), (t_d,) = PartitionSOp.infer_types([tc, tile, ANY], {}), PartitionDOp.infer_types([tc, out, ANY], {})
    r = _registers(t_d)
    plain = f"!cute_nvgpu.atom.universal_copy<{out.element}>"
    return (
        f"%la{at} = cute.atom() : {load}\n%lc{at} = cute.make_tmem_copy(%la{at}, {source}) : ({load}, {tile}) -> {tc}\n"
        f"%ls{at} = cute.tiled.copy.partition_S(%lc{at}, {source}, %thread) : ({tc}, {tile}, {ANY}) -> {t_s}\n"
        f"%ld{at} = cute.tiled.copy.partition_D(%lc{at}, {target}, %thread) : ({tc}, {out}, {ANY}) -> {t_d}\n"
        f"%lr{at} = cute.memref.alloca() : {r}\n"
        f"cute.copy(%lc{at}, %ls{at}, %lr{at}) : ({tc}, {t_s}, {r}) -> ()\n"
        'cute_nvgpu.arch.tmem_wait() {kind = "load"} : () -> ()\n'
        f"%lu{at} = cute.atom() : {plain}\ncute.copy(%lu{at}, %lr{at}, %ld{at}) : ({plain}, {r}, {t_d}) -> ()\n"
    )


def copy_in(store: TmemCopyType, source: str, given: MemRefType, target: str, tile: MemRefType, at: str) -> str:
    """Return the copy of a tensor in global memory to a tile of tensor memory, through registers."""
    (tc,) = MakeTmemCopyOp.infer_types([store, tile], {})
    (t_s,), (t_d,) = PartitionSOp.infer_types([tc, given, ANY], {}), PartitionDOp.infer_types([tc, tile, ANY], {})
    r = _registers(t_s)
    plain = f"!cute_nvgpu.atom.universal_copy<{given.element}>"
    return (
        f"%sa{at} = cute.atom() : {store}\n"
        f"%sc{at} = cute.make_tmem_copy(%sa{at}, {target}) : ({store}, {tile}) -> {tc}\n"
        f"%ss{at} = cute.tiled.copy.partition_S(%sc{at}, {source}, %thread) : ({tc}, {given}, {ANY}) -> {t_s}\n"
        f"%sd{at} = cute.tiled.copy.partition_D(%sc{at}, {target}, %thread) : ({tc}, {tile}, {ANY}) -> {t_d}\n"
        f"%sr{at} = cute.memref.alloca() : {r}\n"
        f"%su{at} = cute.atom() : {plain}\ncute.copy(%su{at}, %ss{at}, %sr{at}) : ({plain}, {t_s}, {r}) -> ()\n"
        f"cute.copy(%sc{at}, %sr{at}, %sd{at}) : ({tc}, {r}, {t_d}) -> ()\n"
        'cute_nvgpu.arch.tmem_wait() {kind = "store"} : () -> ()\n'
    )


def round_trip(element: Attribute, columns: int, stored: tuple[str, int], loaded: tuple[str, int]) -> str:
    """Return a kernel that copies ``X`` (128, columns) to ``Y`` through tensor memory, with two shapes of accesses."""
    packed = element_bits(element) == 16
    store = TmemStoreType(TmemCopy(element, *stored, packed=packed))
    load = TmemLoadType(TmemCopy(element, *loaded, packed=packed))
    matrix = memref(element, "gmem", Layout((128, columns), (columns, 1)), 16)
    lane, column = strides(element_bits(element))
    tile = memref(element, "tmem", Layout((128, columns), (lane, column)), 128)
    body = prologue(allocation(columns))
    body += f"%pt = cute.recast_iter(%p) : {POINTER} to !cute.ptr<{element}, tmem, align<128>>\n"
    body += view("%t", "%pt", f"!cute.ptr<{element}, tmem, align<128>>", 0, tile)
    body += copy_in(store, "%X", matrix, "%t", tile, "") + copy_out(load, "%t", tile, "%Y", matrix, "")
    return module([("X", matrix), ("Y", matrix)], body + epilogue(allocation(columns)))
