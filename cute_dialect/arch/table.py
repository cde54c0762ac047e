"""The table of all atoms by name.  An atom is built and validated on first use.

>>> from cute_dialect.arch import ATOMS
>>> ATOMS["SM90_64x128x16_F32F16F16_SS_TN"].layout_c
Layout("((4,8,4),(2,2,16)):((128,1,16),(64,8,512))")
>>> ATOMS["SM90_64x128x16_F32F16F16_SS"] is ATOMS["SM90_64x128x16_F32F16F16_SS_TN"]  # k-major by default
True
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache

from cute_dialect.arch.atom import Atom, CopyAtom, MmaAtom
from cute_dialect.arch.elements import bits_of
from cute_dialect.arch.errors import AtomError
from cute_dialect.arch.fragments import byte_name
from cute_dialect.spaces import AddressSpace

ALIASES = {
    "SM61_1x1x4_S32S8S8S32": "SM61_DP4A",
    "SM61_1x1x2_S32S16S8S32": "SM61_DP2A",
    "SM80_CP_ASYNC_CACHEALWAYS": "SM80_CP_ASYNC_CACHEALWAYS_16B",
    "SM80_CP_ASYNC_CACHEGLOBAL": "SM80_CP_ASYNC_CACHEGLOBAL_16B",
}
"""Alternative names of atoms."""


@cache
def _makers() -> dict[str, Callable[[], Atom]]:
    from cute_dialect.arch import copies, mma_sync, sm90, sm120, sparse_mma, tmem  # late: start-up

    sources = (
        copies.universal_rows,
        mma_sync.rows_sm61,
        mma_sync.rows_sm70,
        mma_sync.rows_sm75,
        copies.load_rows,
        mma_sync.rows_sm80,
        copies.cp_async_rows,
        mma_sync.rows_sm89,
        sparse_mma.mma_sp_rows,
        sm90.rows,
        sparse_mma.wgmma_sp_rows,
        sm120.rows,
        copies.store_rows,
        copies.byte_rows,
        copies.bulk_rows,
        copies.tma_rows,
        tmem.rows,
    )
    makers: dict[str, Callable[[], Atom]] = {}
    for rows in sources:
        for name, make in rows():
            assert name not in makers, name
            makers[name] = make
    return makers


@cache
def _generated() -> dict[str, Callable[[], Atom]]:
    """Return the rows of tcgen05, which are too many to be made at every start."""
    from cute_dialect.arch.tcgen05 import rows  # late: start-up

    return dict(rows())


def _maker(name: str) -> Callable[[], Atom] | None:
    found = _makers().get(name)
    return _generated().get(name) if found is None and name.startswith("SM100_") else found


@cache
def _made(name: str) -> Atom:
    make = _maker(name)
    assert make is not None
    atom = make()
    assert atom.name == name, (atom.name, name)
    return atom


def canonical_name(name: str) -> str:
    """Return the table's name of an atom: resolve aliases, and append default majors to ``wgmma`` and ``tcgen05``."""
    if name in ALIASES:
        return ALIASES[name]
    if _maker(name) is None and _maker(f"{name}_TN") is not None:
        return f"{name}_TN"
    return name


class AtomTable(Mapping[str, Atom]):
    """Mapping of names to atoms.  Iteration yields the names without building atoms; a missing name is an AtomError.

    The atoms of tcgen05 are found by their names.  Iteration omits them, as it omits aliases: :func:`generated_names`.
    """

    def __getitem__(self, name: str) -> Atom:
        known = canonical_name(name)
        if _maker(known) is None:
            raise UnknownAtom(name)
        return _made(known)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and _maker(canonical_name(name)) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(_makers())

    def __len__(self) -> int:
        return len(_makers())

    def __repr__(self) -> str:
        return f"<{len(self)} atoms>"


class UnknownAtom(AtomError, KeyError):
    """There is no atom of this name.  The message lists similar names."""

    def __init__(self, name: str):
        from difflib import get_close_matches

        start = name[: name.find("_", len("SM100_2SM_"))]  # the shape, because the rows of all shapes take a second
        generated = [n for n in _generated() if n.startswith(start)] if name.startswith("SM100_") else []
        near = get_close_matches(name, [*_makers(), *generated], n=3)
        super().__init__(
            f"expected the name of an atom, got {name!r}" + (f"; did you mean {', '.join(near)}?" if near else "")
        )

    __str__ = Exception.__str__


ATOMS = AtomTable()
"""The table of all atoms."""


def generated_names() -> Iterator[str]:
    """Return the names of the atoms that iteration over ``ATOMS`` omits."""
    return iter(_generated())


# ------------------------------------------------------------------------------------------------------- look-ups


def mma_atom(name: str) -> MmaAtom:
    """Return the MMA atom of a name.  Raises AtomError if there is none."""
    atom = ATOMS[name]
    if not isinstance(atom, MmaAtom):
        raise AtomError("expected an MMA atom, got a copy atom", name)
    return atom


def copy_atom(name: str) -> CopyAtom:
    """Return the copy atom of a name.  Raises AtomError if there is none."""
    atom = ATOMS[name]
    if not isinstance(atom, CopyAtom):
        raise AtomError("expected a copy atom, got an MMA atom", name)
    return atom


def find_mma_sync(
    shape_mnk: tuple[int, int, int],
    types: tuple[str, str, str, str],
    majors: tuple[str, str] = ("k", "k"),
    saturate: bool = False,
    bit_op: str = "",
) -> MmaAtom:
    """Find the warp-level MMA atom of a shape and element types, of the oldest generation that has it.

    Args:
        shape_mnk: ``(M, N, K)``.
        types: element types of D, A, B, C.
        majors: contiguous index of A and of B, "k" or "mn".
        saturate: clamp integer results to their range.
        bit_op: "xor" or "and" for b1.

    Raises:
        AtomError: there is no such atom.  The message lists the available shapes.

    >>> find_mma_sync((16, 8, 16), ("f32", "bf16", "bf16", "f32")).name
    'SM80_16x8x16_F32BF16BF16F32_TN'
    """
    key = (shape_mnk, types, majors, saturate, bit_op)
    found = _mma_sync_index().get(key)
    if found is None:
        shapes = sorted({k[0] for k in _mma_sync_index() if k[1] == types})
        raise AtomError(
            f"mma.sync has no shape {'x'.join(map(str, shape_mnk))} with majors {majors[0]} and {majors[1]}"
            + (", saturating" if saturate else "")
            + (f", {bit_op}" if bit_op else "")
            + f" for D, A, B, C = {', '.join(types)}; {_available(shapes)}"
        )
    return mma_atom(found)


def _available(shapes: Sequence[tuple[int, int, int]]) -> str:
    if not shapes:
        return "no shape has these types"
    return f"shapes of these types: {', '.join('x'.join(map(str, s)) for s in shapes)}"


@cache
def _mma_sync_index() -> dict[tuple[tuple[int, int, int], tuple[str, ...], tuple[str, str], bool, str], str]:
    index: dict[tuple[tuple[int, int, int], tuple[str, ...], tuple[str, str], bool, str], str] = {}
    for name in _makers():
        if "_SPARSE_" in name or not name.startswith(("SM7", "SM8", "SM90_16x")):
            continue
        atom = _made(name)
        if isinstance(atom, MmaAtom):
            types = (atom.d, atom.a, atom.b, atom.c)
            majors = (atom.major_a, atom.major_b)
            index.setdefault(
                (atom.shape_mnk, types, majors, bool(atom.emit["saturate"]), str(atom.emit["bit_op"])), name
            )
    return index


def find_mma_sp(shape_mnk: tuple[int, int, int], types: tuple[str, str, str, str], saturate: bool = False) -> MmaAtom:
    """Find the warp-level MMA atom with a sparse A, of a shape and element types of D, A, B, C.

    Raises AtomError, with a list of the available shapes, if there is none.

    >>> find_mma_sp((16, 8, 64), ("i32", "i8", "ui8", "i32"), saturate=True).name
    'SM80_SPARSE_16x8x64_S32S8U8S32_TN_SATURATE'
    """
    found = _mma_sp_index().get((shape_mnk, types, saturate))
    if found is None:
        shapes = sorted({k[0] for k in _mma_sp_index() if k[1:] == (types, saturate)})
        raise AtomError(
            f"mma.sp has no shape {'x'.join(map(str, shape_mnk))}"
            + (", saturating" if saturate else "")
            + f" for D, A, B, C = {', '.join(types)}; {_available(shapes)}"
        )
    return mma_atom(found)


@cache
def _mma_sp_index() -> dict[tuple[tuple[int, int, int], tuple[str, ...], bool], str]:
    atoms = [mma_atom(name) for name in _makers() if name.startswith(("SM80_SPARSE_", "SM89_SPARSE_"))]
    return {(a.shape_mnk, (a.d, a.a, a.b, a.c), bool(a.emit["saturate"])): a.name for a in atoms}


def find_narrow_mma(
    shape_mnk: tuple[int, int, int],
    types: tuple[str, str, str, str],
    kind: str,
    sf: str = "",
    vector: int = 0,
    sparse: bool = False,
) -> MmaAtom:
    """Find the ``mma.sync`` or ``mma.sp`` of sm_120 for a kind and element types of D, A, B, C.

    Args:
        shape_mnk: ``(M, N, K)``.
        types: element types of D, A, B, C.
        kind: f8f6f4, mxf8f6f4, mxf4 or mxf4nvf4.
        sf: element type of the scale factors, or "" for the one of the kind.
        vector: elements along K of a dense A that share a factor, or 0 for those of the kind.
        sparse: True for a sparse A.

    Raises:
        AtomError: there is no such atom.  The message lists what the kind allows.

    >>> find_narrow_mma((16, 8, 64), ("f32", "f4E2M1FN", "f4E2M1FN", "f32"), "mxf4").name
    'SM120_16x8x64_F32E2M1E2M1F32_TN_VS32_UE8M0'
    """
    from cute_dialect.arch.sm120 import FACTORS, NARROW, atom_name, is_packed  # late: start-up

    if kind not in FACTORS:
        raise AtomError(f"{kind} is not supported; use one of {', '.join(FACTORS)}", "kind")
    factors = FACTORS[kind]
    chosen = next((f for f in factors if (not sf or f[0] == sf) and (not vector or f[1] == vector)), ("", 0))
    if not chosen[0] and (factors or sf or vector):
        known = " or ".join(f"sf = {f}, vec = {v}" for f, v in factors) or "no scale factors"
        raise AtomError(f"{kind} has {known}; got sf = {sf or 'none'}, vec = {vector or 'none'}", "kind")
    name = atom_name(types, kind, *chosen, sparse=sparse)
    if name not in ATOMS or ATOMS[name].emit["kind"] != kind or mma_atom(name).shape_mnk != shape_mnk:
        d = "f32" if kind != "f8f6f4" else "f32 or f16"
        elements = "f4E2M1FN" if is_packed(kind) else ", ".join(NARROW)
        k = (128 if sparse else 64) if is_packed(kind) else 64 if sparse else 32
        raise AtomError(
            f"kind {kind} has no {'x'.join(map(str, shape_mnk))} ({', '.join(types)}); use 16x8x{k}, {d} for D and C, "
            f"and elements {elements} for A and B"
        )
    return mma_atom(name)


def find_wgmma(
    n: int,
    types: tuple[str, str, str],
    source_a: str = "smem",
    majors: tuple[str, str] = ("k", "k"),
    saturate: bool = False,
) -> MmaAtom:
    """Find the wgmma atom 64×N for element types D, A, B.

    Raises AtomError, with the allowed values, if there is none.

    >>> find_wgmma(256, ("f32", "f16", "f16"), "smem", ("k", "mn")).name
    'SM90_64x256x16_F32F16F16_SS_TT'
    """
    from cute_dialect.arch.sm90 import wgmma_name  # late: start-up

    return mma_atom(wgmma_name(n, types, source_a, _wgmma_letters(n, types, source_a, majors), saturate))


def find_wgmma_sp(
    n: int,
    types: tuple[str, str, str],
    source_a: str = "smem",
    majors: tuple[str, str] = ("k", "k"),
    saturate: bool = False,
) -> MmaAtom:
    """Find the wgmma atom 64×N with a sparse A for element types D, A, B; see :func:`find_wgmma`.

    >>> find_wgmma_sp(64, ("i32", "i8", "i8"), "rmem").name
    'SM90_SPARSE_64x64x64_S32S8S8_RS_TN'
    """
    from cute_dialect.arch.sparse_mma import wgmma_sp_name  # late: start-up

    return mma_atom(wgmma_sp_name(n, types, source_a, _wgmma_letters(n, types, source_a, majors), saturate))


def _wgmma_letters(n: int, types: tuple[str, str, str], source_a: str, majors: tuple[str, str]) -> str:
    from cute_dialect.arch.sm90 import FLOAT_N, INTEGER_N, TYPES  # late: start-up

    if types not in TYPES:
        known = ", ".join(" ".join(t) for t in TYPES)
        raise AtomError(f"expected one of these types of D, A, B for wgmma: {known}; got {' '.join(types)}")
    extents = INTEGER_N if types[0] == "i32" else FLOAT_N
    if n not in extents:
        raise AtomError(f"expected N among {', '.join(map(str, extents))} for {' '.join(types)}, got {n}", "N")
    for what, major in zip("AB", majors):
        if major != "k" and bits_of(types[1]) != 16:
            raise AtomError(f"expected a k-major {types[1]} operand for wgmma, got {major}-major", what)
    if majors[0] != "k" and source_a == AddressSpace.rmem:
        raise AtomError(f"expected a k-major operand in registers, got {majors[0]}-major", "A")
    return ("T" if majors[0] == "k" else "N") + ("N" if majors[1] == "k" else "T")


def find_universal(bits: int) -> CopyAtom:
    """Find the plain load or store of ``bits`` bits: 8, 16, 32, 64, 128 or 256.  Raises AtomError."""
    return copy_atom(f"UniversalCopy_{bits}b")


def find_cp_async(size: int, cache: str = "ca", zfill: bool = False) -> CopyAtom:
    """Find ``cp.async`` of 4, 8 or 16 bytes; ``cache`` is "ca", or "cg" for 16 bytes.  Raises AtomError.

    >>> find_cp_async(16, "cg").ptx
    'cp.async.cg.shared.global [$d], [$a], 16;'
    """
    level = {"ca": "CACHEALWAYS", "cg": "CACHEGLOBAL"}.get(cache, cache)
    return copy_atom(f"SM80_CP_ASYNC_{level}_{size}B{'_ZFILL' if zfill else ''}")


def find_matrix_copy(
    matrices: int, transposed: bool = False, store: bool = False, bits: int = 16, source: str = ""
) -> CopyAtom:
    """Find ``ldmatrix`` or ``stmatrix`` for 1, 2 or 4 matrices.  Raises AtomError.

    Args:
        matrices: number of matrices; 1 or 2 of transposed bytes that are loaded.
        transposed: True to transpose each matrix.
        store: True for ``stmatrix``.
        bits: width of the elements; it matters if they are transposed.
        source: packed format of 4-bit or 6-bit numbers in memory, ``b4x16_p64`` or ``b6x16_p32``.

    >>> find_matrix_copy(4, transposed=True).name, find_matrix_copy(2, transposed=True, bits=8).name
    ('SM75_U16x8_LDSM_T', 'SM100_U8x16_LDSM_T')
    """
    if source or (transposed and bits == 8):
        if matrices == 4 and transposed and not store:
            raise AtomError("expected 1 or 2 matrices of transposed bytes, got 4")
        return copy_atom(byte_name(matrices, transposed, store, source))
    if matrices not in (1, 2, 4):
        raise AtomError(f"expected 1, 2 or 4 matrices, got {matrices}")
    kind = f"U16x{2 * matrices}" if transposed else f"U32x{matrices}"
    return copy_atom(f"{'SM90' if store else 'SM75'}_{kind}_{'STSM' if store else 'LDSM'}_{'T' if transposed else 'N'}")


def find_tma(
    direction: str, rank: int, im2col: bool = False, multicast: bool = False, by_row: bool = False
) -> CopyAtom:
    """Find the TMA copy for a tensor rank.  Raises AtomError.

    Args:
        direction: "load", "store", "reduce_add" or "prefetch".
        rank: number of dimensions of the tensor.
        im2col: True for pixels of a convolution.
        multicast: True for a load to several blocks of a cluster.
        by_row: True for four rows of a matrix by index, gather4 or scatter4.

    >>> find_tma("load", 2, multicast=True).name, find_tma("store", 2, by_row=True).name
    ('SM90_TMA_LOAD_MULTICAST_2D', 'SM100_TMA_STORE_2D_SCATTER4')
    """
    mode = "_IM2COL" if im2col else ""
    names = {
        "load": f"LOAD{mode}{'_MULTICAST' if multicast else ''}",
        "store": f"STORE{mode}",
        "reduce_add": f"REDUCE_ADD{mode}",
        "prefetch": f"LOAD{mode}_PREFETCH",
    }
    if direction not in names:
        raise AtomError(f"expected one of {', '.join(names)} as the direction of a TMA copy, got {direction!r}")
    if by_row:
        return copy_atom(f"SM100_TMA_{names[direction]}_{rank}D_{'SCATTER4' if direction == 'store' else 'GATHER4'}")
    return copy_atom(f"SM90_TMA_{names[direction]}_{rank}D")
