"""Asynchronous tcgen05 instructions: MMA and copies to tensor memory, their descriptors and their arithmetic.

One thread issues an instruction, and the tensor pipe of the block executes it later, in order of issue. The schedule
decides when. `tcgen05.commit` arrives at an mbarrier when the earlier instructions of its thread are complete.

**Descriptors.** Types and shape of an MMA come from the 32-bit instruction descriptor, operands in shared memory from
64-bit descriptors (version 1). A field with a value that the instruction does not support is an error that names it.

**Arithmetic.** The products and their sum over the K of one instruction are formed in f64. Then the accumulator is
added and the result rounded once to its type. Integers wrap to 32 bits unless the descriptor saturates. With block
scaling each element is multiplied by its scale first. The summation order on the device is undocumented.

**Sparse A.** The metadata in tensor memory select the elements of the K of B that the kept elements of A multiply.

Sources: PTX ISA 9.1, 9.7.16.4 (descriptors), 9.7.16.10 "tcgen05.mma", 9.7.16.9.2 "tcgen05.cp"; CUTLASS headers for the
layouts of accumulators and scale factors in tensor memory.
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, Protocol

import ml_dtypes
import numpy as np

from cute_dialect.arch.tcgen05_ws import ZeroColumns
from cute_dialect.interp.errors import Fault, OpInfo
from cute_dialect.interp.machine.group import Group, Transfer
from cute_dialect.interp.machine.tensor_memory import (
    LOW,
    WHOLE,
    Address,
    Rect,
    TensorMemory,
    lane_list,
    lane_run,
)
from cute_dialect.interp.machine.wgmma import check_operand, expand, operand_index
from cute_dialect.interp.memory.buffers import SMEM_ORIGIN, WRITTEN
from cute_dialect.interp.values import Array

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.interp.machine.barriers import Block

ROW_BYTES = 32  # bytes of K that an instruction reads of each row; 48 with K = 96


# ------------------------------------------------------------------------------------------------------------- elements


_BYTES = np.arange(256, dtype=np.uint8)
TABLES: dict[str, Array] = {
    "e4m3": _BYTES.view(ml_dtypes.float8_e4m3fn).astype(np.float64),
    "e5m2": _BYTES.view(ml_dtypes.float8_e5m2).astype(np.float64),
    "e2m3": _BYTES[:64].view(ml_dtypes.float6_e2m3fn).astype(np.float64),
    "e3m2": _BYTES[:64].view(ml_dtypes.float6_e3m2fn).astype(np.float64),
    "e2m1": _BYTES[:16].view(ml_dtypes.float4_e2m1fn).astype(np.float64),
    "ue8m0": _BYTES.view(ml_dtypes.float8_e8m0fnu).astype(np.float64),
    "ue4m3": (_BYTES & 0x7F).view(ml_dtypes.float8_e4m3fn).astype(np.float64),
}
"""Value of each code of the types of at most 8 bits."""
_NUMPY = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "s8": np.int8, "u8": np.uint8}
_SIZES = {"f16": 2, "bf16": 2, "tf32": 4}
"""Bytes of an element of a row; one byte for all others."""
FP4_SHIFT, FP6_SHIFT = 2, 0
"""Position of the lowest bit of a 4- and a 6-bit element in its byte of tensor memory. Not documented as text."""


def _elements(raw: Array, kind: str) -> Array:
    """Return the values of rows of bytes, as f64."""
    if kind in TABLES:
        return TABLES[kind][raw]
    raw = np.ascontiguousarray(raw)
    if kind == "tf32":
        return (raw.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)
    return raw.view(_NUMPY[kind]).astype(np.float64)


def _nibbles(raw: Array) -> Array:
    """Return the 4-bit elements of bytes, lower first."""
    return np.stack([raw & 15, raw >> 4], axis=-1).reshape(*raw.shape[:-1], -1)


def _sixes(raw: Array) -> Array:
    """Return the 6-bit elements of groups of 3 bytes."""
    three = raw.reshape(*raw.shape[:-1], -1, 3).astype(np.uint32)
    bits = three[..., 0] | three[..., 1] << 8 | three[..., 2] << 16
    return np.stack([bits >> s & 63 for s in (0, 6, 12, 18)], axis=-1).reshape(*raw.shape[:-1], -1).astype(np.uint8)


def unpack_units(raw: Array, bits: int) -> Array:
    """Return the codes of rows whose units of 16 bytes hold 16 packed elements of 4 or 6 bits, and padding."""
    units = raw.reshape(*raw.shape[:-1], -1, 16)[..., : 2 * bits]
    return (_nibbles(units) if bits == 4 else _sixes(units)).reshape(*raw.shape[:-1], -1)


# ---------------------------------------------------------------------------------------------- instruction descriptors


KINDS = ("f16", "tf32", "f8f6f4", "i8")
_FLOAT8 = {0: "e4m3", 1: "e5m2", 3: "e2m3", 4: "e3m2", 5: "e2m1"}
_TYPES = {
    "f16": {0: "f16", 1: "bf16"},
    "tf32": {2: "tf32"},
    "f8f6f4": _FLOAT8,
    "i8": {0: "u8", 1: "s8"},
    "mxf8f6f4": _FLOAT8,
    "mxf4": {1: "e2m1"},
    "mxf4nvf4": {1: "e2m1"},
}
_RESULTS = {"f16": {0: "f16", 1: "f32"}, "tf32": {1: "f32"}, "f8f6f4": {0: "f16", 1: "f32"}, "i8": {2: "s32"}}
_NARROW = {"e2m3": 6, "e3m2": 6, "e2m1": 4}


class Form(NamedTuple):
    """The static part of an MMA instruction.

    - kind: "f16", "tf32", "f8f6f4", "i8", "mxf8f6f4", "mxf4" or "mxf4nvf4"
    - vector: K elements per scale factor, 0 without block scaling; of the kept elements of a sparse A
    """

    kind: str
    group: int = 1
    vector: int = 0
    is_sparse: bool = False
    is_weight_stationary: bool = False

    @property
    def name(self) -> str:
        ws, sp = ".ws" * self.is_weight_stationary, ".sp" * self.is_sparse
        return f"tcgen05.mma{ws}{sp}.kind::{self.kind}"

    @property
    def is_packed(self) -> bool:
        """True if a byte holds two 4-bit elements."""
        return self.kind in ("mxf4", "mxf4nvf4")


class Shape(NamedTuple):
    """A decoded instruction descriptor. `m` and `n` are those of the CTA pair for cta_group 2."""

    m: int
    n: int
    d: str
    a: str
    b: str
    a_major: str = "k"
    b_major: str = "k"
    negates: bool = False
    saturate: bool = False
    selector: int = 0
    scale: str = ""
    sfa_id: int = 0
    sfb_id: int = 0
    is_wide: bool = False
    """K is 96, which sm_103 has for packed elements."""


@lru_cache(maxsize=1024)
def decode_shape(bits: int, form: Form) -> Shape:
    """Decode an instruction descriptor. Raises Fault if a field is not valid for the instruction."""

    def field(low: int, count: int) -> int:
        return bits >> low & ((1 << count) - 1)

    def wrong(name: str, got: object, allowed: str) -> Fault:
        return Fault(
            "tcgen05",
            f"{form.name}: {name} of the instruction descriptor is {got}; {allowed}",
            notes=(f"instruction descriptor {bits & 0xFFFFFFFF:#010x}",),
        )

    def one_of(name: str, code: int, table: dict[int, str]) -> str:
        if code not in table:
            allowed = ", ".join(f"{c} ({t})" for c, t in table.items())
            raise wrong(name, code, f"use {allowed}")
        return table[code]

    scaled = form.kind.startswith("mx")
    reserved = {3: 1, 6: 1} if scaled else {6: 1, 23: 1, 29: 1, **({} if form.kind == "i8" else {3: 1})}
    if not form.is_weight_stationary and not scaled:
        reserved[30] = 2
    for low, count in reserved.items():
        if field(low, count):
            raise wrong(f"reserved bit {low}", field(low, count), "it must be 0")
    if bool(field(2, 1)) != form.is_sparse:
        raise wrong("the sparsity bit (2)", field(2, 1), f"it must be {int(form.is_sparse)} for this instruction")
    selectors = 2 if form.is_sparse and form.kind in _HALF_WORDS else 1
    if field(0, 2) >= selectors:
        allowed = (
            "use 0 or 1" if selectors == 2 else "it must be 0 for " + ("this kind" * form.is_sparse or "a dense A")
        )
        raise wrong("the sparsity selector (bits 0 to 1)", field(0, 2), allowed)
    d = "f32" if scaled else one_of("the type of D (bits 4 to 5)", field(4, 2), _RESULTS[form.kind])
    a = one_of("the type of A (bits 7 to 9)", field(7, 3), _TYPES[form.kind])
    b = one_of("the type of B (bits 10 to 12)", field(10, 3), _TYPES[form.kind])
    if form.kind == "f16" and a != b:
        raise wrong("the type of B (bits 10 to 12)", f"{field(10, 3)} ({b})", f"A has type {a}; both must be equal")
    if a == "bf16" and d != "f32":
        raise wrong("the type of D (bits 4 to 5)", "0 (f16)", "A has type bf16, so D must be 1 (f32)")
    majors = ["mn" if field(15 + i, 1) else "k" for i in range(2)]
    for name, major, kind in (("A", majors[0], a), ("B", majors[1], b)):
        if major == "mn" and (form.is_packed or kind in _NARROW):
            raise wrong(f"the major of {name}", "1 (MN-major)", f"{kind} must be K-major, 0")
    if form.kind == "i8" and field(13, 2):
        raise wrong("the negation (bits 13 to 14)", field(13, 2), "integers cannot be negated; it must be 0")
    m, n = 16 * field(24, 5), 8 * field(17, 6)
    _check_size(form, m, n, wrong)
    shape = Shape(m, n, d, a, b, majors[0], majors[1], bool(field(13, 1)) != bool(field(14, 1)), bool(field(3, 1)))
    if not scaled:
        return shape._replace(selector=field(0, 2))
    is_wide = bool(field(31, 1))
    if is_wide and (not form.is_packed or form.is_sparse):
        raise wrong("the bit of K = 96 (31)", 1, "it must be 0 for this instruction")
    if is_wide and (m != 128 * form.group or n % (16 * form.group)):
        allowed = f"M of {128 * form.group} and N a multiple of {16 * form.group}"
        raise wrong("the shape with K = 96", f"{m}x{n}", f"use {allowed}")
    scale = "ue8m0" if field(23, 1) else "ue4m3"
    if scale == "ue4m3" and (form.kind != "mxf4nvf4" or form.vector != 16):
        raise wrong(
            "the scale type (bit 23)", "0 (ue4m3)", "ue4m3 needs kind mxf4nvf4 with blocks of 16; use 1 (ue8m0)"
        )
    shape = shape._replace(saturate=False, scale=scale, sfa_id=field(29, 2), sfb_id=field(4, 2), is_wide=is_wide)
    every = (0, 1, 2, 3)
    ids = {1: every, 2: (0, 2), 3: every, 4: (0,), 6: (0, 2)}[kept(form, shape) // form.vector]
    for name, got in (("A", shape.sfa_id), ("B", shape.sfb_id)):
        if got not in ids:
            raise wrong(f"the scale factor id of {name}", got, f"use {', '.join(map(str, ids))}")
    return shape


_HALF_WORDS = ("f16", "tf32")
"""Kinds whose metadata are half words, two of which share a column."""


def depth(form: Form, shape: Shape) -> int:
    """Return the K of an instruction, in elements of B."""
    return kept(form, shape) * (2 if form.is_sparse else 1)


def kept(form: Form, shape: Shape) -> int:
    """Return the number of elements of A that an instruction reads of each row."""
    if form.is_packed:
        return 96 if shape.is_wide else 2 * ROW_BYTES
    return ROW_BYTES // {"f16": 2, "tf32": 4}.get(form.kind, 1)


def _check_size(form: Form, m: int, n: int, wrong: Callable[[str, object, str], Fault]) -> None:
    scaled = form.kind.startswith("mx")
    if form.is_weight_stationary:
        rows, columns = (32, 64, 128), (64, 128, 256)
    else:
        rows = (128,) if scaled and form.group == 1 else ((128, 256) if form.group == 2 else (64, 128))
        if form.is_sparse:
            # The layouts of metadata for 64 rows per block are not known.
            rows = (128 * form.group,)
        step = 8 * form.group
        if form.kind == "i8":
            step = 16 * form.group
        columns = (8, *range(step, 257, step)) if form.kind == "i8" and form.group == 1 else range(step, 257, step)
        if form.kind == "i8" and form.group == 1:
            columns = (8, 24, *range(16, 257, 16))
    if m not in rows:
        raise wrong("M (bits 24 to 28, in units of 16)", m, f"use {' or '.join(map(str, rows))}")
    if n not in columns:
        listed = list(columns)
        allowed = ", ".join(map(str, listed)) if len(listed) < 5 else f"multiples of {listed[1] - listed[0]} up to 256"
        raise wrong("N (bits 17 to 22, in units of 8)", n, f"use {allowed}")


# --------------------------------------------------------------------------------------------------- shared memory


_SWIZZLES = {0: "none", 1: "128 bytes with 32-byte atoms", 2: "128 bytes", 4: "64 bytes", 6: "32 bytes"}


class SmemDescriptor(NamedTuple):
    """A decoded 64-bit descriptor of an operand in shared memory; sizes in bytes."""

    bits: int
    start: int
    lbo: int
    sbo: int
    base: int
    code: int

    def __str__(self) -> str:
        return (
            f"descriptor {self.bits:#018x}: start {self.start:#x}, LBO {self.lbo}, SBO {self.sbo}, base offset "
            f"{self.base}, swizzle {_SWIZZLES.get(self.code, self.code)}"
        )


@lru_cache(maxsize=4096)
def decode_smem(bits: int, name: str, operand: str) -> SmemDescriptor:
    """Decode a descriptor of shared memory. Raises Fault if a field is not valid.

    Args:
        name: The instruction, for errors.
        operand: The operand, for errors.
    """
    bits &= 0xFFFF_FFFF_FFFF_FFFF
    d = SmemDescriptor(
        bits, (bits & 0x3FFF) << 4, (bits >> 16 & 0x3FFF) << 4, (bits >> 32 & 0x3FFF) << 4, bits >> 49 & 7, bits >> 61
    )

    def wrong(field: str, got: object, allowed: str) -> Fault:
        return Fault("tcgen05", f"{name}: {field} of the descriptor of {operand} is {got}; {allowed}", notes=(str(d),))

    version = bits >> 46 & 7
    if version != 1:
        hint = " (0 is the version of Hopper's wgmma)" if version == 0 else ""
        raise wrong("the version (bits 46 to 48)", version, f"it must be 1{hint}")
    for low, count in ((14, 2), (30, 2), (53, 8)):
        if bits >> low & ((1 << count) - 1):
            raise wrong(f"the reserved field at bit {low}", bits >> low & ((1 << count) - 1), "it must be 0")
    if bits >> 52 & 1:
        raise wrong("the mode of the leading offset (bit 52)", 1, "the interpreter supports relative offsets, 0")
    if d.code not in _SWIZZLES:
        known = ", ".join(f"{c} ({t})" for c, t in _SWIZZLES.items())
        raise wrong("the swizzle (bits 61 to 63)", d.code, f"use {known}")
    if d.base:
        raise wrong("the base offset (bits 49 to 51)", d.base, "align the tile to its swizzle pattern and use 0")
    return d


@lru_cache(maxsize=2048)
def _atoms_of_32(d: SmemDescriptor, x: int, k: int, size: int) -> tuple[Array, int, int, Array]:
    """Return the positions of an MN-major operand with the 128-byte swizzle of 32-byte atoms, as `operand_index`."""
    run = 128 // size
    xs, ks = np.arange(x)[:, None], np.arange(k)[None, :]
    at = d.start + xs % run * size + xs // run * d.lbo + ks % 4 * 128 + ks // 4 * d.sbo
    at = (at ^ (at >> 7 & 3) << 5) - SMEM_ORIGIN
    return at // size, int(at.min()), int(at.max()) + size, np.unique(at // 16)


class Operand(NamedTuple):
    """An operand in shared memory: `rows` rows of `elements` elements of `size` bytes.

    The first `unit_bytes` of each 16 bytes are data, and the others padding.
    """

    descriptor: int
    rows: int
    elements: int
    size: int
    major: str
    kind: str
    name: str  # "A", "B" or "the source"
    unit_bytes: int = 16

    def locate(self, instruction: str) -> tuple[Array, int, int, Array]:
        """Return the positions of the elements, see `wgmma.operand_index`. Raises Fault."""
        d = decode_smem(self.descriptor, instruction, self.name)
        if self.major == "mn" and (d.code == 1) != (self.kind == "tf32"):
            need = "tf32 needs 1 (128 bytes with 32-byte atoms)" if self.kind == "tf32" else "only tf32 may use it"
            raise Fault(
                "tcgen05",
                f"{instruction}: the swizzle of the MN-major {self.kind} operand {self.name} is {d.code}; {need}",
                notes=(str(d),),
            )
        if d.code == 1:
            return _atoms_of_32(d, self.rows, self.elements, self.size)
        return operand_index(d.bits, self.rows, self.elements, self.size, self.major)

    def read(self, block: Block, instruction: str, *, strict: bool) -> Array:
        """Return the bytes of the operand, of shape (rows, bytes). Raises Fault.

        `strict` is True if reading data that nothing has written is a fault.
        """
        at = self.locate(instruction)
        note = str(decode_smem(self.descriptor, instruction, self.name))
        check_operand(block, at, instruction, note)
        contents = block.smem.contents
        if strict and contents is not None:
            units = at[3] + block.smem_start // 16
            missing = contents.state.reshape(-1, 16)[units, : self.unit_bytes] != WRITTEN
            if missing.any():
                first = int(units[int(missing.any(axis=1).argmax())]) * 16
                raise Fault(
                    "uninit",
                    f"{instruction} reads {self.name} from {block.smem.place(first)}: nothing has written it",
                    notes=(note,),
                )
        words = block.smem.view(np.dtype(f"u{self.size}"), 1)[at[0] + block.smem_start // self.size]
        return np.ascontiguousarray(words).view(np.uint8)


# ------------------------------------------------------------------------------------------------------------------ MMA


class Layout(NamedTuple):
    """Lanes and columns of the accumulator of one CTA, relative to its address.

    - lanes: lane of each row, for the first part of the columns
    - parts: number of parts that N is split into; part p lies `step` · p lanes further
    """

    rows: int
    lanes: tuple[int, ...]
    parts: int
    step: int

    def rects(self, address: Address, columns: int) -> list[Rect]:
        """Return the words of a matrix with `columns` columns."""
        width = columns // self.parts
        mask = 0
        for p in range(self.parts):
            for lane in self.lanes:
                mask |= 1 << (address.lane + lane + p * self.step)
        return [Rect(mask, address.column, address.column + width)]


@lru_cache(maxsize=64)
def layout_of(m: int, group: int, weight_stationary: bool = False) -> Layout:
    """Return the layout of D in each CTA for an instruction with `m` rows."""
    if weight_stationary:
        parts = 128 // m
        return Layout(m, tuple(range(m)), parts, m)
    rows = m // group
    if rows == 128:
        return Layout(128, tuple(range(128)), 1, 0)
    if group == 1:
        return Layout(64, tuple(r % 16 + 32 * (r // 16) for r in range(64)), 1, 0)
    return Layout(64, tuple(range(64)), 2, 64)


class Use(NamedTuple):
    """Words of tensor memory that an instruction accesses."""

    block: Block
    rect: Rect
    writes: bool
    role: str


class Work(Protocol):
    """An asynchronous operation that one thread issues.

    - name: the instruction; blocks: the CTAs that it works in
    - key: for an MMA, accumulator, shape and kind
    """

    blocks: list[Block]

    @property
    def name(self) -> str: ...

    @property
    def key(self) -> tuple[object, ...]: ...

    def check(self) -> None:
        """Check addresses and lanes. Raises Fault."""
        ...

    def operands(self) -> list[Operand]:
        """Return the operands in shared memory."""
        ...

    def uses(self) -> list[Use]:
        """Return the words of tensor memory that it accesses."""
        ...

    def execute(self, g: Group) -> None:
        """Read the operands and write the result."""
        ...


class Multiply:
    """One tcgen05.mma, as issued."""

    def __init__(
        self, form: Form, d: int, a: int, b: int, shape: Shape, accumulates: bool, blocks: list[Block]
    ) -> None:
        self.form = form
        self.d = Address.of(d)
        self.a = a
        self.b = b
        self.shape = shape
        self.accumulates = accumulates
        self.blocks = blocks  # the CTAs, the one with rows 0 first
        self.a_in_tensor_memory = False
        self.scale_d = 0
        self.collector = "discard"
        self.buffer = "a"  # the collector buffer: "a", or "b0" to "b3" for B of an MMA with .ws
        self.disabled = [0] * len(blocks)  # mask of lanes that are not written, per CTA
        self.zero_columns: ZeroColumns | None = None
        self.sfa = self.sfb = self.metadata = Address(0, 0)
        self.layout = layout_of(shape.m, form.group, form.is_weight_stationary)

    @property
    def name(self) -> str:
        return self.form.name

    @property
    def row_bytes(self) -> int:
        """Bytes of K that the instruction reads of each row of A."""
        return 48 if self.shape.is_wide else ROW_BYTES

    @property
    def factors(self) -> int:
        """Scale factors of a row of A or B."""
        return kept(self.form, self.shape) // self.form.vector

    @property
    def flops(self) -> float:
        """Floating-point operations of the instruction."""
        return 2.0 * self.shape.m * self.shape.n * depth(self.form, self.shape)

    @property
    def key(self) -> tuple[object, ...]:
        """Accumulator, shape and kind: MMAs with the same key execute in order of issue."""
        return (self.d, self.shape.m, self.shape.n, self.form.kind)

    def __str__(self) -> str:
        s = self.shape
        return f"m{s.m}n{s.n}k{depth(self.form, self.shape)} {s.d} {s.a} {s.b}"

    def operand(self, name: str) -> Operand:
        """Return operand A or B as it lies in the shared memory of each CTA."""
        s = self.shape
        kind, major = (s.a, s.a_major) if name == "A" else (s.b, s.b_major)
        size = _SIZES.get(kind, 1)
        rows = self.layout.rows if name == "A" else s.n // self.form.group
        length = self.row_bytes // size * (2 if name == "B" and self.form.is_sparse else 1)
        unit = 16 if self.form.is_packed else 2 * _NARROW.get(kind, 8)
        return Operand(self.a if name == "A" else self.b, rows, length, size, major, kind, name, unit)

    def operands(self) -> list[Operand]:
        """Return the operands in shared memory."""
        return [self.operand("B")] if self.a_in_tensor_memory else [self.operand("A"), self.operand("B")]

    def check(self) -> None:
        """Check addresses and lanes. Raises Fault."""
        name = self.form.name
        lane = self.d.lane
        allowed = (
            (0, 16) if self.layout.rows == 64 and self.form.group == 1 and not self.form.is_weight_stationary else (0,)
        )
        if lane not in allowed:
            use = " or ".join(map(str, allowed))
            raise Fault("tcgen05", f"{name}: D is at lane {lane}; with M = {self.shape.m} it must be at lane {use}")
        if self.a_in_tensor_memory and Address.of(self.a).lane != lane:
            raise Fault(
                "tcgen05",
                f"{name}: A is at lane {Address.of(self.a).lane} of tensor memory and D at lane {lane}; both must be "
                "at the same lane",
            )
        if self.form.is_sparse and (self.metadata.lane or self.metadata.column % 2):
            raise Fault(
                "tcgen05",
                f"{name}: the metadata of A are at lane {self.metadata.lane}, column {self.metadata.column}; they must "
                "be at lane 0 and an even column",
            )

    @property
    def metadata_columns(self) -> range:
        """Columns of tensor memory that hold the metadata of a sparse A."""
        if self.form.kind in _HALF_WORDS:
            first = self.metadata.column + self.shape.selector
            return range(first, first + 1)
        return range(self.metadata.column, self.metadata.column + 2)

    def uses(self) -> list[Use]:
        """Return the words of tensor memory that it reads and writes."""
        out: list[Use] = []
        for block, disabled in zip(self.blocks, self.disabled):
            if self.a_in_tensor_memory:
                a = Address.of(self.a)
                lanes = self.layout.rects(a, self.layout.parts)[0].lanes
                out.append(Use(block, Rect(lanes, a.column, a.column + self.row_bytes // 4), False, "A"))
            if self.form.is_sparse:
                columns = self.metadata_columns
                out.append(Use(block, Rect(lane_run(0, 128), columns.start, columns.stop), False, "metadata of A"))
            if self.form.vector:
                every = lane_run(0, 128)
                rows, columns = -(-self.layout.rows // 32), -(-self.shape.n // 32)
                if self.layout.parts == 2:
                    columns = min(columns, 4)
                if self.shape.is_wide:
                    # Factors that do not fit in a word continue in the next column of the row.
                    count = self.factors
                    rows += self._next_column(self.layout.rows) if self.shape.sfa_id + count > 4 else 0
                    columns += self._next_column(self.shape.n) if self.shape.sfb_id + count > 4 else 0
                out.append(
                    Use(block, Rect(every, self.sfa.column, self.sfa.column + rows), False, "scale factors of A")
                )
                out.append(
                    Use(block, Rect(every, self.sfb.column, self.sfb.column + columns), False, "scale factors of B")
                )
            for rect in self.layout.rects(self.d, self.shape.n):
                kept = rect._replace(lanes=rect.lanes & ~disabled)
                if kept.lanes:
                    out.append(Use(block, kept, True, "accumulator"))
        return out

    @staticmethod
    def _next_column(rows: int) -> int:
        """Return the distance of two columns that hold factors of the same row, of which there are `rows`."""
        return -(-rows // 128) * 4

    # -- execution ----------------------------------------------------------------------------------------------------

    def execute(self, g: Group) -> None:
        """Compute D = A·B + D."""
        name = self.form.name
        halves = [
            self._values(self.operand("B").read(block, name, strict=g.machine.strict_uninit), self.shape.b)
            for block in self.blocks
        ]
        b = np.concatenate(halves) if len(halves) > 1 else halves[0]
        if self.zero_columns is not None:
            b = np.where(np.array(self.zero_columns.mask(self.shape.m, self.shape.n))[:, None], b.dtype.type(0), b)
        for block, disabled in zip(self.blocks, self.disabled):
            memory = block.tensor_memory()
            if self.accumulates:
                self._check_accumulator(g, memory, disabled)
            width = self.shape.n // self.layout.parts
            for part in range(self.layout.parts):
                lanes = np.array(self.layout.lanes) + self.d.lane + part * self.layout.step
                self._part(g, block, memory, lanes, b[part * width : (part + 1) * width], part, disabled)

    def _values(self, raw: Array, kind: str) -> Array:
        """Return the elements of rows of an operand in shared memory."""
        if self.form.is_packed:
            return TABLES[kind][_nibbles(raw)]
        if kind in _NARROW:
            return TABLES[kind][unpack_units(raw, _NARROW[kind])]
        return _elements(raw, kind)

    def _a(self, g: Group, block: Block, memory: TensorMemory, lanes: Array) -> Array:
        s = self.shape
        if not self.a_in_tensor_memory:
            return self._values(self.operand("A").read(block, self.name, strict=g.machine.strict_uninit), s.a)
        at = Address.of(self.a)
        columns = slice(at.column, at.column + self.row_bytes // 4)
        self._check_written(g, memory, lanes, columns, "reads A from", WHOLE)
        raw = np.ascontiguousarray(memory.words[lanes, columns]).view(np.uint8)
        if self.form.is_packed:
            return TABLES[s.a][_nibbles(raw)]
        if s.a in _NARROW:
            bits = _NARROW[s.a]
            return TABLES[s.a][raw >> (FP4_SHIFT if bits == 4 else FP6_SHIFT) & ((1 << bits) - 1)]
        return _elements(raw, s.a)

    def _part(
        self, g: Group, block: Block, memory: TensorMemory, lanes: Array, b: Array, part: int, disabled: int
    ) -> None:
        """Compute the columns of D that lie in some lanes."""
        s = self.shape
        a = self._a(g, block, memory, lanes)
        if self.form.is_sparse:
            a = self._expanded(g, memory, a)
        if self.form.vector:
            total = self._scaled(g, memory, a, b, lanes, part)
        else:
            total = a @ b.T
        if s.negates:
            total = -total
        columns = slice(self.d.column, self.d.column + len(b))
        old = memory.words[lanes, columns]
        if self.accumulates:
            total = total + np.ldexp(_result_values(old, s.d), -self.scale_d)
        words = _result_words(total, s)
        halves = LOW if s.d == "f16" else WHOLE
        if disabled:
            written = np.array([not disabled >> int(lane) & 1 for lane in lanes])
            lanes, words = lanes[written], words[written]
        memory.words[lanes, columns] = words
        memory.valid[lanes, columns] = halves

    def _expanded(self, g: Group, memory: TensorMemory, a: Array) -> Array:
        """Return a sparse A at full K. Raises Fault for invalid metadata."""
        from cute_dialect.arch.tcgen05 import metadata_of  # late: start-up
        from cute_dialect.arch.tcgen05_kinds import kind_of  # late: start-up

        columns = self.metadata_columns
        self._check_written(
            g, memory, np.arange(128), slice(columns.start, columns.stop), "reads metadata of A from", WHOLE
        )
        words = memory.words[:128, columns.start : columns.stop]
        if self.form.kind in _HALF_WORDS:
            # Lanes 16*i to 16*i + 7 hold the first half of K of rows 16*i to 16*i + 15, lanes 16*i + 8 to 16*i + 15
            # the second half. The lower half of a column is for the first 8 rows.
            halves = words.reshape(8, 2, 8, 1) >> np.array([0, 16], np.uint32) & np.uint32(0xFFFF)
            words = halves.transpose(0, 3, 2, 1).reshape(128, 2)
        held = metadata_of(kind_of(self.form.kind, scaled=self.form.kind.startswith("mx")), 1, 128)
        everything = np.ones(1, np.bool_)
        return expand(held, a[None], words[None], everything, 0, self.name, lanes=False)[0]

    def _scaled(self, g: Group, memory: TensorMemory, a: Array, b: Array, lanes: Array, part: int) -> Array:
        """Return the products of block-scaled operands. Each quarter of the lanes reads its own copy of the factors."""
        count = self.factors
        rows = np.arange(len(lanes))
        quarter = lanes // 32
        places = 32 * quarter + rows % 32, self.sfa.column + rows // 32
        sa = self._factors(g, memory, *places, "A")
        scaled_a = (a.reshape(len(a), count, -1) * sa[..., None]).reshape(a.shape)
        n = np.arange(len(b))
        total = np.empty((len(a), len(b)))
        for q in np.unique(quarter).tolist():
            column = n % 128 // 32 if self.layout.parts == 2 else n // 32
            sb = self._factors(g, memory, 32 * q + n % 32, self.sfb.column + column, "B")
            scaled_b = (b.reshape(len(b), count, -1) * sb[..., None]).reshape(b.shape)
            mine = quarter == q
            total[mine] = scaled_a[mine] @ scaled_b.T
        return total

    def _factors(self, g: Group, memory: TensorMemory, lanes: Array, columns: Array, name: str) -> Array:
        """Return the scale factors of A or B in lanes and columns, from the first byte that the descriptor selects."""
        first, rows = (self.shape.sfa_id, self.layout.rows) if name == "A" else (self.shape.sfb_id, self.shape.n)
        end = first + self.factors
        parts: list[Array] = []
        for column in (columns, columns + self._next_column(rows))[: -(-end // 4)]:
            bad = memory.valid[lanes, column] != WHOLE
            if bad.any():
                i = int(bad.argmax())
                self._unwritten(
                    g,
                    f"reads a scale factor of {name} from",
                    Address(int(lanes[i]), int(column[i])),
                    "; scale factors must be in all four quarters of the lanes (tcgen05.cp.32x128b.warpx4)",
                )
            parts.append(np.ascontiguousarray(memory.words[lanes, column]).view(np.uint8).reshape(-1, 4))
        return TABLES[self.shape.scale][np.concatenate(parts, axis=1)[:, first:end]]

    def _check_accumulator(self, g: Group, memory: TensorMemory, disabled: int) -> None:
        halves = LOW if self.shape.d == "f16" else WHOLE
        for rect in self.layout.rects(self.d, self.shape.n):
            at = memory.first_invalid(rect._replace(lanes=rect.lanes & ~disabled), halves)
            if at is not None:
                hint = '; set the field "accumulate" of the MMA to false for the first K block'
                self._unwritten(g, "accumulates on", at, hint)

    def _check_written(
        self, g: Group, memory: TensorMemory, lanes: Array, columns: slice, verb: str, halves: int
    ) -> None:
        bad = (memory.valid[lanes, columns] & halves) != halves
        if bad.any():
            i, j = (int(x[0]) for x in np.nonzero(bad))
            self._unwritten(g, verb, Address(int(lanes[i]), columns.start + j), "")

    def _unwritten(self, g: Group, verb: str, at: Address, hint: str) -> None:
        """Report a read of unwritten tensor memory: an error with the "uninit" check, else a warning."""
        text = (
            f"{self.form.name} {verb} tensor memory that nothing has written: lane {at.lane}, column {at.column}{hint}"
        )
        if g.machine.strict_uninit:
            raise Fault("uninit", text)
        g.machine.warn(("tensor memory", hash((self.form, verb))), text)


def _result_values(words: Array, kind: str) -> Array:
    """Return the accumulators in words, as f64."""
    if kind == "f16":
        return (words & np.uint32(0xFFFF)).astype(np.uint16).view(np.float16).astype(np.float64)
    return words.view(np.int32 if kind == "s32" else np.float32).astype(np.float64)


def _result_words(total: Array, s: Shape) -> Array:
    """Return rounded accumulators as words."""
    if s.d == "s32":
        if s.saturate:
            total = np.clip(total, -(2.0**31), 2.0**31 - 1)
        return total.astype(np.int64).astype(np.uint32)
    if s.d == "f16":
        return total.astype(np.float16).view(np.uint16).astype(np.uint32)
    return total.astype(np.float32).view(np.uint32)


# ----------------------------------------------------------------------------------------------------------------- copy


class CopyShape(NamedTuple):
    """A shape of tcgen05.cp: rows and bytes of a row in shared memory, and the lanes that each row is written to."""

    rows: int
    row_bytes: int
    lanes: tuple[tuple[int, ...], ...]


def _upper_pairs() -> tuple[tuple[int, ...], ...]:
    return tuple((r, r + 32) if r < 32 else (r + 32, r + 64) for r in range(64))


COPIES = {
    "128x256b": CopyShape(128, 32, tuple((r,) for r in range(128))),
    "128x128b": CopyShape(128, 16, tuple((r,) for r in range(128))),
    "64x128b.warpx2::02_13": CopyShape(64, 16, tuple((r, r + 64) for r in range(64))),
    "64x128b.warpx2::01_23": CopyShape(64, 16, _upper_pairs()),
    "32x128b.warpx4": CopyShape(32, 16, tuple((r, r + 32, r + 64, r + 96) for r in range(32))),
}


class Copy:
    """One tcgen05.cp, as issued. `source_bits` is 4 or 6 if it unpacks elements of that size to bytes, else 8."""

    def __init__(self, shape: str, address: int, descriptor: int, source_bits: int, blocks: list[Block]) -> None:
        self.name = f"tcgen05.cp.{shape}"
        self.key: tuple[object, ...] = ()
        self.shape = COPIES[shape]
        self.address = Address.of(address)
        self.source_bits = source_bits
        self.blocks = blocks
        unit = 2 * source_bits
        self.source = Operand(descriptor, self.shape.rows, self.shape.row_bytes, 1, "k", "b8", "the source", unit)

    def check(self) -> None:
        """Check the address. Raises Fault."""
        if self.address.lane:
            raise Fault("tcgen05", f"{self.name}: the address is at lane {self.address.lane}; it must be at lane 0")

    def operands(self) -> list[Operand]:
        """Return the source."""
        return [self.source]

    def uses(self) -> list[Use]:
        """Return the words of tensor memory that it writes."""
        mask = 0
        for lanes in self.shape.lanes:
            for lane in lanes:
                mask |= 1 << lane
        first = self.address.column
        rect = Rect(mask, first, first + self.shape.row_bytes // 4)
        return [Use(block, rect, True, "destination") for block in self.blocks]

    def execute(self, g: Group) -> None:
        """Copy the rows."""
        columns = slice(self.address.column, self.address.column + self.shape.row_bytes // 4)
        for block in self.blocks:
            raw = self.source.read(block, self.name, strict=g.machine.strict_uninit)
            if self.source_bits != 8:
                shift = FP4_SHIFT if self.source_bits == 4 else FP6_SHIFT
                raw = unpack_units(raw, self.source_bits) << np.uint8(shift)
            words = np.ascontiguousarray(raw).view(np.uint32)
            memory = block.tensor_memory()
            for targets in zip(*self.shape.lanes):
                memory.words[list(targets), columns] = words
                memory.valid[list(targets), columns] = WHOLE


# ----------------------------------------------------------------------------------------------------------------- pipe


class Pipe:
    """The tensor pipe of a CTA or CTA pair: operations that have been issued and not executed, in order."""

    __slots__ = ("collected", "queue")

    def __init__(self) -> None:
        self.queue: list[Operation] = []
        self.collected: dict[str, tuple[object, ...]] = {}  # collector buffer -> operand, its extent and the kind

    def collect(self, i: Multiply) -> None:
        """Record the use of a collector buffer by an MMA. Raises Fault if it does not hold the MMA's operand."""
        held, extent = ("A", "M") if i.buffer == "a" else ("B", "N")
        key = (i.a, i.a_in_tensor_memory, i.shape.m) if i.buffer == "a" else (i.b, i.shape.n)
        if i.collector in ("use", "lastuse") and self.collected.get(i.buffer) != (*key, i.form.kind):
            use = f"collector::{i.buffer}::"
            raise Fault(
                "tcgen05",
                f"{i.name} with {use}{i.collector}, but no earlier MMA with {use}fill has left the same {held}, "
                f"{extent} and kind in the buffer",
            )
        self.collected.pop(i.buffer, None)
        if i.collector in ("fill", "use"):
            self.collected[i.buffer] = (*key, i.form.kind)

    def add(
        self, run: Callable[[], None], info: OpInfo, g: Group, lane: int, uses: Sequence[Use] = (), product: str = ""
    ) -> None:
        """Issue an operation. The schedule calls `run` at some later time. `product` describes an MMA."""
        op = Operation(self, run, info, g, lane, uses)
        op.product = product
        if g.machine.timeline is not None:
            g.machine.timeline.issued(op)
        self.queue.append(op)
        g.machine.transfers.add(op)
        g.count.progress += 1


class Operation(Transfer):
    """An operation of a tensor pipe in flight. It executes after all earlier operations of the pipe."""

    __slots__ = ("pipe", "uses")

    def __init__(
        self, pipe: Pipe, run: Callable[[], None], info: OpInfo, g: Group, lane: int, uses: Sequence[Use]
    ) -> None:
        super().__init__(_nothing, run, info, g, lane, 0)
        self.pipe = pipe
        self.uses = uses

    def finish(self) -> None:
        """Execute the operation, after the earlier ones."""
        while not self.done:
            first = self.pipe.queue.pop(0)
            first.read_done = first.done = True
            first.run()

    def run(self) -> None:
        self._do(self.write)
        self.group.count.progress += 1


def _nothing() -> None:
    pass


def check_idle(pipe: Pipe, memory: TensorMemory, first: int, end: int, name: str) -> None:
    """Check that no operation in flight accesses columns. Raises Fault."""
    for op in pipe.queue:
        for use in op.uses:
            if use.block.tensor is memory and use.rect.first < end and first < use.rect.end:
                where = op.info.location or op.info.text
                raise Fault(
                    "tcgen05",
                    f"{name} of columns that an operation in flight accesses ({use.role}); wait for the mbarrier of a "
                    "tcgen05.commit first",
                    notes=(f"the operation was issued at {where}",),
                )


__all__ = ["COPIES", "KINDS", "Copy", "Form", "Multiply", "Pipe", "Use", "check_idle", "decode_shape", "lane_list"]
