"""Blackwell: the kinds and forms of ``tcgen05.mma``, with the types and shapes of each.

A *kind* is the qualifier that selects the element types: f16, tf32, f8f6f4 and i8, and with block scales mxf8f6f4, mxf4
and mxf4nvf4.  A *form* is a variant of the instruction: dense, ``.sp`` with a sparse A, or ``.ws`` with B in a buffer.
All atoms of :mod:`.tcgen05` are combinations of the two.

>>> kind, form = kind_of("f16"), FORMS["sp"]
>>> shapes_of(form, kind, 1, "smem")
Shapes(rows=(128,), extents=range(16, 257, 16), depth=32)

Source: PTX ISA 9.1, tcgen05.mma, tables of types and shapes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cute_dialect.arch.errors import AtomError
from cute_dialect.arch.targets import TCGEN05
from cute_dialect.spaces import AddressSpace

_FP8 = ("f8E4M3FN", "f8E5M2")
_NARROW = (*_FP8, "f6E2M3FN", "f6E3M2FN", "f4E2M1FN")
_S8 = ("i8", "ui8")
_E8M0 = "f8E8M0FNU"


@dataclass(frozen=True, eq=False)
class Kind:
    """A kind of ``tcgen05.mma``.

    Args:
        name: the qualifier in PTX.
        types: element types of D, A and B.
        summary: the types in words, for error messages.
        depth: K of one dense instruction, in elements.
        code: operand ``kind`` of the LLVM intrinsics; kinds with block scales have intrinsics of their own.
        mn_major: element types that may be mn-major.
        integer_n: N above 32 is a multiple of 16, as for integers.
        arch: chips that have it.
        negates: A and B may be negated.
        factors: types of the scale factors, and elements along K that share one; empty without block scales.
        packed: elements per byte of shared memory.
        wide: K of the instruction that sm_103a has in addition, or 0.
        group: elements of a sparse A per group of four bits in its metadata.
        sparse_arch: chips that have it with a sparse A; "" for ``arch``.
    """

    name: str
    types: tuple[tuple[str, str, str], ...]
    summary: str
    depth: int
    code: int = 0
    mn_major: tuple[str, ...] = ()
    integer_n: bool = False
    arch: str = TCGEN05
    negates: bool = True
    factors: tuple[tuple[str, int], ...] = ()
    packed: int = 1
    wide: int = 0
    group: int = 4
    sparse_arch: str = ""

    @property
    def elements(self) -> tuple[str, ...]:
        """Element types of A."""
        return tuple(dict.fromkeys(a for _, a, _ in self.types))


def _types(d: Sequence[str], elements: Sequence[str]) -> tuple[tuple[str, str, str], ...]:
    return tuple((x, a, b) for x in d for a in elements for b in elements)


KINDS: tuple[Kind, ...] = (
    Kind(
        "f16",
        (("f16", "f16", "f16"), ("f32", "f16", "f16"), ("f32", "bf16", "bf16")),
        "A and B f16 with D f16 or f32, or A and B bf16 with D f32",
        16,
        code=0,
        mn_major=("f16", "bf16"),
    ),
    Kind("tf32", _types(("f32",), ("tf32",)), "A and B tf32 with D f32", 8, code=1, mn_major=("tf32",), group=2),
    Kind(
        "f8f6f4",
        _types(("f32", "f16"), _NARROW),
        f"A and B each one of {', '.join(_NARROW)} with D f32 or f16",
        32,
        code=2,
        mn_major=_FP8,
    ),
    Kind(
        "i8",
        _types(("i32",), _S8),
        "A and B each i8 or ui8 with D i32",
        32,
        code=3,
        mn_major=_S8,
        integer_n=True,
        arch="sm_100a|sm_110a",
        negates=False,
    ),
)
"""The kinds without block scales."""

_FP4_ARCH = "sm_100a|sm_103a|sm_110a"


def _of_fp4(name: str, factors: tuple[tuple[str, int], ...]) -> Kind:
    return Kind(
        name,
        _types(("f32",), ("f4E2M1FN",)),
        "f32 and f4E2M1FN",
        64,
        factors=factors,
        packed=2,
        wide=96,
        group=8,
        sparse_arch=_FP4_ARCH,
    )


SCALED_KINDS: tuple[Kind, ...] = (
    Kind(
        "mxf8f6f4",
        _types(("f32",), _NARROW),
        f"f32 and {', '.join(_NARROW)}",
        32,
        factors=((_E8M0, 32),),
    ),
    _of_fp4("mxf4", ((_E8M0, 32),)),
    _of_fp4("mxf4nvf4", (("ue4m3", 16), (_E8M0, 16), (_E8M0, 32))),
)
"""The kinds with block scales.

With K of 96 an instruction reads 3 or 6 factors per row.  They begin at any byte of a column, or at byte 0 or 2, and
continue in the next column of the row.  The figures of the PTX ISA are not known as text, so these are assumptions:

* [?] the next column of a row is 4 columns later, and that of SFB 8 columns later if N exceeds 128;
* [?] only sm_103a has it, and not the family sm_103f.
"""

COLLECTORS = ("discard", "lastuse", "fill", "use")
"""Uses of a collector buffer, in the order of their codes as operands of the intrinsics."""

WIDE_ARCH = "sm_103a"
"""The chip with K of 96."""


@dataclass(frozen=True, eq=False)
class Form:
    """A form of ``tcgen05.mma``.

    Args:
        name: the qualifier in PTX; "" for the dense form.
        word: its word in the names of atoms.
        rows: ``cta_group``, the number of blocks that compute D -> rows of D.
        deeper: K of an instruction, as a multiple of that of the dense form.
        scales: the form exists with block scales.
        refusal: text for a shape that does not exist, with fields for the shape and the allowed values.
    """

    name: str
    word: str
    rows: Mapping[int, tuple[int, ...]]
    deeper: int = 1
    scales: bool = True
    refusal: str = ""


FORMS: Mapping[str, Form] = {
    form.name: form
    for form in (
        Form("", "", {1: (64, 128), 2: (128, 256)}),
        Form(
            "sp",
            "SPARSE_",
            {1: (128,), 2: (256,)},
            deeper=2,
            refusal="the shape is {shape} with cta_group {group}; kind {kind} with a sparse A needs M of {m}, N a "
            "multiple of {step} up to 256, and K of {k}",
        ),
        Form(
            "ws",
            "WS_",
            {1: (32, 64, 128)},
            scales=False,
            refusal="the shape is {shape}; kind {kind} with ws and A in {source} needs M of {m}, N of {n}, and K of "
            "{k}",
        ),
    )
}
"""Name -> form."""

_SCALED_ROWS = {1: (128,), 2: (128, 256)}
_SCALED_REFUSAL = (
    "the shape is {shape} with cta_group {group}; kind {kind} needs M of 128 (or 256 with cta_group 2), N a multiple "
    "of 8 (16 with cta_group 2) up to 256, and K of {k}{wide}"
)
_WS_EXTENTS = (64, 128, 256)


def kind_of(name: str, *, scaled: bool = False) -> Kind:
    """Return the kind of this name, with block scales or without.  Raises AtomError."""
    kinds = SCALED_KINDS if scaled else KINDS
    for kind in kinds:
        if kind.name == name:
            return kind
    what = " with block scales" if scaled else ""
    raise AtomError(f"{name!r} is not a kind of tcgen05.mma{what}; use one of {', '.join([k.name for k in kinds])}")


def kind_of_types(types: tuple[str, str, str]) -> Kind:
    """Return the kind that multiplies elements of D, A and B of these types.  Raises AtomError."""
    for kind in KINDS:
        if types in kind.types:
            return kind
    known = "; ".join(f"{k.name}: {k.summary}" for k in KINDS)
    raise AtomError(f"tcgen05.mma has no D, A, B = {', '.join(types)}; its kinds are {known}")


class Shapes(NamedTuple):
    """The shapes of an instruction.

    Args:
        rows: the allowed M.
        extents: the allowed N.
        depth: K.
    """

    rows: tuple[int, ...]
    extents: Sequence[int]
    depth: int


def extents_n(kind: Kind, m: int, cta_group: int, source_a: str = "smem") -> Sequence[int]:
    """Return the N that a dense MMA with M rows and without block scales supports.

    >>> extents_n(kind_of("f16"), 128, 1)[:3], extents_n(kind_of("i8"), 64, 1)[:4], extents_n(kind_of("i8"), 128, 2)[:2]
    ((8, 16, 24), (8, 16, 32, 48), (32, 64))
    """
    if kind.integer_n:
        # The PTX ISA also lists N = 24, CUTLASS does not [?].
        extents = (8, *range(16, 257, 16)) if cta_group == 1 else tuple(range(32, 257, 32))
    else:
        extents = tuple(range(8 * cta_group, 257, 8 * cta_group))
    # With A in tensor memory CUTLASS requires multiples of 16 for M = 128, and of 32 for a pair [H].
    whole = 1 if source_a == AddressSpace.smem else 32 if cta_group == 2 else 16 if m == 128 else 8
    return tuple(n for n in extents if n % whole == 0)


def shapes_of(form: Form, kind: Kind, cta_group: int, source_a: str, m: int = 128, *, is_wide: bool = False) -> Shapes:
    """Return the shapes of a form and a kind.  ``m`` selects the N of the dense form."""
    depth = (kind.wide if is_wide else kind.depth) * form.deeper
    if form.name == "ws":
        rows = form.rows[1]
        return Shapes(rows if source_a == AddressSpace.smem else rows[-1:], _WS_EXTENTS, depth)
    if form.name == "sp":
        return Shapes(form.rows[cta_group], range(16 * cta_group, 257, 16 * cta_group), depth)
    if kind.factors:
        rows, step = _SCALED_ROWS[cta_group], 8 * cta_group
        if is_wide:
            rows, step = rows[-1:], 2 * step
        return Shapes(rows, range(step, 257, step), depth)
    return Shapes(form.rows[cta_group], extents_n(kind, m, cta_group, source_a), depth)


def majors_of(kind: Kind, types: tuple[str, str, str], source_a: str) -> tuple[str, ...]:
    """Return the majors of A and B in BLAS notation; TN is k-major for both.  A in tensor memory is k-major.

    >>> types = ("f32", "f16", "f16")
    >>> majors_of(kind_of("f16"), types, "smem"), majors_of(kind_of("f16"), types, "tmem")
    (('TN', 'TT', 'NN', 'NT'), ('TN', 'TT'))
    """
    _, a, b = types
    first = "TN" if source_a == AddressSpace.smem and a in kind.mn_major else "T"
    second = "NT" if b in kind.mn_major else "N"
    return tuple(x + y for x in first for y in second)


class Key(NamedTuple):
    """Parameters of an atom of ``tcgen05.mma``.

    Args:
        kind: the kind.
        form: the form.
        cta_group: 1, or 2 for a pair of blocks.
        shape: ``(M, N, K)``, of the pair if there is one; with a sparse A, K counts all elements.
        types: element types of D, A, B.
        source_a: memory of A, "smem" or "tmem".
        majors: majors of A and B in BLAS notation.
        saturate: clamp integer results to their range.
        factor: type of the scale factors, and elements along K that share one, kept elements if A is sparse; None
            without block scales.
    """

    kind: Kind
    form: Form
    cta_group: int
    shape: tuple[int, int, int]
    types: tuple[str, str, str]
    source_a: str = "smem"
    majors: str = "TN"
    saturate: bool = False
    factor: tuple[str, int] | None = None

    @property
    def is_wide(self) -> bool:
        """True if K is 96."""
        return not self.form.name and bool(self.kind.wide) and self.shape[2] == self.kind.wide


def check(key: Key) -> None:
    """Raise AtomError unless there is an atom with these parameters.  The message lists the allowed values."""
    kind, form, types, source = key.kind, key.form, key.types, key.source_a
    if types not in kind.types:
        raise AtomError(f"kind {kind.name} has no D, A, B = {', '.join(types)}; use {kind.summary}")
    if key.factor is not None and key.factor not in kind.factors:
        known = " or ".join([f"sf = {sf}, vec = {vec}" for sf, vec in kind.factors]) or "none"
        sf, vec = key.factor
        raise AtomError(f"kind {kind.name} has no scale factors sf = {sf}, vec = {vec}; use {known}")
    if key.cta_group not in form.rows:
        one = "one block executes an MMA with ws, use 1" if form.name == "ws" else "use 1, or 2 for a pair of blocks"
        raise AtomError(f"cta_group is {key.cta_group}; {one}")
    if source not in (AddressSpace.smem, AddressSpace.tmem):
        raise AtomError(f"A is in {source}; use smem or tmem")
    _check_shape(key)
    if key.majors not in majors_of(kind, types, source):
        where = "in tensor memory" if source == AddressSpace.tmem else f"of type {types[1]}"
        a, b = ("k" if given == k else "mn" for given, k in zip(key.majors, "TN"))
        raise AtomError(f"the majors of A {where} and B of type {types[2]} are {a} and {b}; use k")
    if key.saturate and types[0] != "i32":
        raise AtomError(f"saturate needs integers, got D of type {types[0]}")


def _check_shape(key: Key) -> None:
    kind, form, group, source = key.kind, key.form, key.cta_group, key.source_a
    m, n, k = key.shape
    allowed = shapes_of(form, kind, group, source, m, is_wide=key.is_wide)
    if m in allowed.rows and n in allowed.extents and k == allowed.depth:
        return
    rows, extents = " or ".join(map(str, allowed.rows)), " or ".join(map(str, allowed.extents))
    refusal = form.refusal or (_SCALED_REFUSAL if kind.factors else "")
    if refusal:
        wide = f", or of {kind.wide} on {WIDE_ARCH}, with N a multiple of 16 (32)" if kind.wide else ""
        raise AtomError(
            refusal.format(
                shape=f"{m}x{n}x{k}",
                group=group,
                kind=kind.name,
                source=source,
                m=rows,
                n=extents,
                step=allowed.extents[0],
                k=kind.depth * form.deeper,
                wide=wide,
            )
        )
    if m not in allowed.rows:
        raise AtomError(f"M is {m}; use {rows} for cta_group {group}")
    if n not in allowed.extents:
        raise AtomError(
            f"N is {n}; use one of {', '.join(map(str, allowed.extents))} for kind {kind.name}, M = {m}, cta_group "
            f"{group} and A in {source}"
        )
    raise AtomError(f"K is {k}; use {allowed.depth} for kind {kind.name}")


def plain_keys() -> Iterator[Key]:
    """Return the parameters of all atoms without block scales."""
    for form in FORMS.values():
        for kind in KINDS:
            for group, all_rows in form.rows.items():
                for source in ("smem", "tmem"):
                    for m in all_rows:
                        rows, extents, depth = shapes_of(form, kind, group, source, m)
                        for n in extents if m in rows else ():
                            yield from _variants(Key(kind, form, group, (m, n, depth), kind.types[0], source))


def _variants(key: Key) -> Iterator[Key]:
    """Return the keys for all types and majors of a kind, and for saturated results."""
    for types in key.kind.types:
        for majors in majors_of(key.kind, types, key.source_a):
            for saturate in (False, True) if types[0] == "i32" else (False,):
                yield key._replace(types=types, majors=majors, saturate=saturate)
