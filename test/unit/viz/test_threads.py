"""Drawings of tiled copies, MMA atoms, bank conflicts and TMA, compared with atom tables and with values computed by
hand.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from svg_pictures import cells, shown
from tensor_layouts import Layout as Oracle
from tensor_layouts import mode, size

import cute_dialect.lang as cute
from cute_dialect.arch import ATOMS, CopyAtom, MmaAtom
from cute_dialect.lang.nvgpu import cpasync, warp
from cute_dialect.lang.tracing.tracer import parse_type
from cute_dialect.viz import DrawingError, draw, draw_banks, draw_copy, draw_mma, draw_tma
from cute_dialect.viz.banks import cycles

MMA_ATOMS = [
    "SM61_DP4A", "SM70_8x8x4_F32F16F16F32_NT", "SM75_16x8x8_F32F16F16F32_TN", "SM80_8x8x4_F64F64F64F64_TN",
    "SM80_16x8x16_F32F16F16F32_TN", "SM80_16x8x32_S32S8S8S32_TN", "SM89_16x8x32_F32E4M3E4M3F32_TN",
    "SM80_SPARSE_16x8x32_F32F16F16F32_TN", "SM90_64x16x16_F32F16F16_SS_TN", "SM90_64x8x32_F32E4M3E4M3_RS_TN",
]  # fmt: skip
COPY_ATOMS = [
    "SM75_U32x4_LDSM_N", "SM75_U16x4_LDSM_T", "SM90_U32x2_STSM_N", "SM80_CP_ASYNC_CACHEGLOBAL_16B", "UniversalCopy_64b",
]  # fmt: skip


def holders(said: str) -> set[str]:
    """Return the ``T1V2`` labels in the text of a cell."""
    held = said.partition("\n")[0].partition(": ")[2]
    return set() if held == "no thread" else set(held.split(" and ")[0].split(", "))


def oracle(layout: Any) -> tuple[Any, int]:
    """Return the layout of an atom as a layout of the oracle, and the number of values per thread."""
    made = Oracle(layout.shape, layout.stride)
    return made, size(made) // size(mode(made, 0))


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("name", MMA_ATOMS)
def test_mma_drawings_match_the_table(name: str) -> None:
    """Panels show A on the left, B above (transposed) and C. Each value of each thread is in the cell that the atom's
    layout gives.
    """
    atom = ATOMS[name]
    assert isinstance(atom, MmaAtom)
    found = cells(draw(name))
    for panel, operand in enumerate("ABC"):
        rows, columns = atom.tile(operand)
        wanted: dict[tuple[int, int], set[str]] = {}
        layout, values = oracle(atom.layout(operand))
        shared = operand != "C" and (atom.source_a if operand == "A" else atom.source_b) == "smem"
        for t in range(1 if shared else atom.threads):
            for v in range(values):
                j, i = divmod(layout(t, v), rows)
                wanted.setdefault((j, i) if operand == "B" else (i, j), set()).add(f"T{t}V{v}")
        shape = (columns, rows) if operand == "B" else (rows, columns)
        assert {k[1:] for k in found if k[0] == panel} == {(i, j) for i in range(shape[0]) for j in range(shape[1])}
        for (n, i, j), (title, _) in found.items():
            if n == panel and shared:
                assert f"{next(iter(wanted[i, j]))[2:]} in shared memory" in title
            elif n == panel:
                assert holders(title) == wanted[i, j], (operand, i, j)


@pytest.mark.parametrize("name", COPY_ATOMS)
def test_copy_drawings_match_the_table(name: str) -> None:
    """A row of the drawing has the values per thread of the wider side, and both sides show the same elements."""
    atom = ATOMS[name]
    assert isinstance(atom, CopyAtom)
    bits = int(atom.element[1:])
    drawn = draw(name)
    columns = drawn.panels[0].columns
    found = cells(drawn)
    for panel, side in enumerate(("src", "dst")):
        layout, values = oracle(atom.in_elements(side, bits))
        wanted: dict[tuple[int, int], set[str]] = {}
        for t in range(atom.threads):
            for v in range(values):
                wanted.setdefault(divmod(layout(t, v), columns), set()).add(f"T{t}V{v}")
        assert {k[1:]: holders(t) for k, (t, _) in found.items() if k[0] == panel} == wanted


def partitioned(make: Any, threads: int, shape: tuple[int, int]) -> list[list[int]]:
    """Return the elements of each thread's partition of a tile, in order, as seen by a kernel on the CPU."""
    values = shape[0] * shape[1]
    out = np.full((threads, values), -1, np.int32)

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor) -> None:
        tid = cute.arch.thread_idx()[0]
        part = cute.coalesce(make(x, tid))
        for i in range(cute.size(part)):
            y[tid, i] = part[i]

    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor) -> None:
        kernel(x, y).launch(grid=1, block=threads)

    host(np.arange(values, dtype=np.int32).reshape(shape[1], shape[0]).T, out, device="cpu")
    return [[int(e) for e in row if e >= 0] for row in out]


@pytest.fixture(scope="module")
def tiled_mma() -> Any:
    return cute.make_tiled_mma(
        warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16)), (2, 2, 1), permutation_mnk=(32, 32, 16)
    )


def test_drawn_tiled_copy_matches_the_partitions_of_a_kernel() -> None:
    """The drawing of 8 x 8 threads with 1 x 4 values matches the layouts of the copy and the partitions in a kernel."""
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Int32, num_bits_per_copy=64)
    copy = cute.make_tiled_copy_tv(
        atom, cute.make_layout((8, 8), stride=(8, 1)), cute.make_layout((1, 4), stride=(0, 1))
    )
    drawn = draw(copy)
    assert drawn.svg == draw_copy(copy).svg == cute.viz.render_tiled_copy_svg(copy, (8, 32)).svg
    found = cells(drawn)
    for (_, i, j), (title, _) in found.items():
        assert holders(title) == {f"T{8 * i + j // 4}V{j % 4}"}
    assert [b.cells for b in drawn.panels[0].borders if b.weight == 3] == [{(0, 0), (0, 1)}]
    assert "8 bytes that one thread moves" in drawn.svg
    parts = partitioned(lambda x, tid: copy.get_slice(tid).partition_S(x), 64, (8, 32))
    said = {(n, i, j): t for (n, i, j), (t, _) in found.items()}
    for t, part in enumerate(parts):
        for v, element in enumerate(part):
            assert f"T{t}V{v}" in holders(said[0, element % 8, element // 8])


def test_a_copy_for_a_product(tiled_mma: Any) -> None:
    """An ldmatrix copy for A reads rows of shared memory, and its destinations are the A fragments of the MMA."""
    ldmatrix = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), cute.Float16)
    copy = cute.make_tiled_copy_A(ldmatrix, tiled_mma)
    drawn, product = draw(copy), cells(draw_mma(tiled_mma))
    found = cells(drawn)
    assert [p.title for p in drawn.panels] == ["source (smem)", "destination (rmem)"]
    for i in range(32):
        for j in range(16):
            lanes = {int(h[1:].partition("V")[0]) for h in holders(found[0, i, j][0])}
            assert lanes == {i % 16 + 16 * (j // 8) + 32 * (i // 16) + 64 * n for n in range(2)}
            threads = {h.partition("V")[0] for h in holders(found[1, i, j][0])}
            assert threads == {h.partition("V")[0] for h in holders(product[0, i, j][0])}


def test_drawn_tiled_mma_matches_the_partitions_of_a_kernel(tiled_mma: Any) -> None:
    drawn = draw(tiled_mma)
    assert drawn.svg == cute.viz.render_tiled_mma_svg(tiled_mma, (32, 32, 16)).svg
    found = cells(drawn)
    parts = partitioned(lambda x, tid: tiled_mma.get_slice(tid).partition_C(x), 128, (32, 32))
    for t, part in enumerate(parts):
        assert len(part) == 8
        for v, element in enumerate(part):
            assert holders(found[2, element % 32, element // 32][0]) == {f"T{t}V{v}"}
    # B is above C, and A is on its left.
    (ax, ay), (bx, by), (cx, cy) = shown(drawn).origin
    assert (ay, bx) == (cy, cx) and ax < cx and by < cy


def test_bank_cycles_match_the_interpreter() -> None:
    from cute_dialect.interp.reports.profile import bank_transactions

    rng = random.Random(5)
    for nbytes in (1, 2, 4, 8, 16):
        for _ in range(60):
            lanes = sorted(rng.sample(range(32), rng.choice([32, 32, 17, 3])))
            step, period = rng.choice([0, 4, 8, 16, 64, 128, 132]), rng.choice([32, 8, 4, 2])
            shuffled = rng.random() < 0.3
            at = {
                t: (t % period * step + (rng.randrange(64) * 16 if shuffled else 0)) // nbytes * nbytes for t in lanes
            }
            counted = bank_transactions(np.array(list(at.values())), np.array(lanes), nbytes)[0]
            found = cycles(at, nbytes)
            assert len(found) == counted, (nbytes, at)
            served = {(t, word) for c in found for word, who in c.served.values() for t in who}
            assert served == {(t, a // 4 + k) for t, a in at.items() for k in range(max(1, nbytes // 4))}


def test_bank_conflicts(tiled_mma: Any) -> None:
    """Eight lanes of ldmatrix read rows of 128 bytes: in one pass with the swizzle, in eight without."""
    copy = cute.make_tiled_copy_A(cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), cute.Float16), tiled_mma)
    good = draw_banks("S<3,3,3> o 0 o (32,64):(64,1)", copy, bits=16)
    bad = draw_banks("(32,64):(64,1)", copy, bits=16)
    assert "16 cycles, 16 without conflicts" in good.title and "128 cycles, 16 without conflicts" in bad.title
    assert 'class="bad"' not in good.svg and bad.svg.count('class="bad"') == 4 * 28 * 4
    title, text = cells(bad)[0, 1, 2]
    assert title == "bank 2, cycle 1: word 34 (bytes 136 to 139) for T1, 1 cycle late" and text == ["T1"]
    # A tensor in a kernel has an element type and the swizzle of its pointer.
    seen: list[str] = []

    @cute.kernel
    def kernel() -> None:
        plain = cute.smem_tensor(cute.Float16, cute.make_layout((32, 64), stride=(64, 1)), byte_alignment=1024)
        swizzled = cute.make_tensor(cute.recast_ptr(plain.iterator, cute.make_swizzle(3, 4, 3)), plain.layout)
        seen.append(draw_banks(plain, copy).title)
        seen.append(draw_banks(swizzled, copy).title)
        seen.append(cute.viz.draw_swizzle(swizzled).title)

    @cute.jit
    def host() -> None:
        kernel().launch(grid=1, block=128)

    cute.trace(host)
    assert [s.partition(": ")[2] for s in seen[:2]] == [
        "128 cycles, 16 without conflicts",
        "16 cycles, 16 without conflicts",
    ]
    assert seen[2] == "(32,64):(64,1) at a pointer with S<3,4,3>"


def test_a_tma_atom() -> None:
    """A TMA box of 128 rows of 64 f16: each 16-byte unit is at the address that the 128-byte swizzle gives."""
    seen: list[Any] = []

    @cute.kernel
    def kernel(atom: cute.CopyAtom, coords: cute.Tensor) -> None: ...

    @cute.jit
    def host(x: cute.Tensor) -> None:
        layout = cute.make_composed_layout(cute.make_swizzle(3, 4, 3), 0, cute.make_layout((128, 64), stride=(64, 1)))
        atom, coords = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), x, layout, (128, 64))
        seen.append(draw(atom))
        kernel(atom, coords).launch(grid=1, block=32)

    cute.trace(host, cute.runtime.make_fake_compact_tensor(cute.Float16, (256, 128), stride_order=(1, 0)))
    drawn = seen[0]
    assert drawn.title == "TMA box 64 x 128 of f16: 16384 bytes, swizzle of 128 bytes"
    found = cells(drawn)
    assert len([k for k in found if k[0] == 0]) == 16 * 8  # the first rows
    for row in range(16):
        for unit in range(8):
            assert found[1, row, unit ^ row % 8][1] == [str(row), str(8 * unit)]
            at = 128 * row + 16 * (unit ^ row % 8)
            assert found[0, row, unit][0].startswith(
                f"elements {8 * unit} to {8 * unit + 7} of row {row} → bytes {at} to {at + 15} "
            )
    corners = "lower = (-1, -1), upper = (-1, -1)"
    columns = parse_type(f"!cute_nvgpu.atom.tma_load_im2col<f16, channels = 64, pixels = 32, {corners}, swizzle = 128>")
    assert draw(columns).title == "TMA box 64 x 32 of f16: 4096 bytes, swizzle of 128 bytes"
    wide = "lower = (0, 0), upper = (0, 0), swizzle = 128, mode = w, halo = 2"
    columns = parse_type(f"!cute_nvgpu.atom.tma_load_im2col<f16, channels = 64, pixels = 30, {wide}>")
    assert draw(columns).title == "TMA box 64 x 32 of f16: 4096 bytes, swizzle of 128 bytes"
    assert "w: 30 pixels along W and N, with a halo of 2" in draw(columns).svg
    narrow = parse_type("!cute_nvgpu.atom.tma_load<f4E2M1FN, box = (128, 8), swizzle = 128, unpack = 16>")
    assert draw(narrow).title == "TMA box 128 x 8 of i8: 1024 bytes, swizzle of 128 bytes"
    assert "unpacked: 16 elements f4E2M1FN at the start of each 16 bytes" in draw(narrow).svg
    assert "a tile starts at a multiple of 1024 bytes" in drawn.svg and "out of bounds: zero" in drawn.svg


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: draw_copy("(4,8):(8,1)"), "draw_copy needs a tiled copy or a copy atom, got '(4,8):(8,1)'"),
        (lambda: draw_mma("(4,8):(8,1)"), "draw_mma needs a tiled MMA or an MMA atom, got '(4,8):(8,1)'"),
        (lambda: draw_tma("(4,8):(8,1)"), "draw_tma needs a TMA atom from make_tiled_tma_atom, got '(4,8):(8,1)'"),
        (lambda: draw_banks("(4,8):(8,1)", "(4,8):(1,4)"), "draw_banks: the element size is unknown; give bits=16"),
        (
            lambda: draw_banks("(4,8):(8,1)", "(4,8):(1,4)", bits=16, warp=1),
            "warp 1 does not exist; the copy has 1 warps",
        ),
        (
            lambda: draw_banks("(4,8):(1,4)", "(4,8):(1,4)", bits=16, values=2),
            "the 2 values that thread 0 moves at once are not contiguous",
        ),
        (
            lambda: draw_banks("(4,8):(8,1)", "32:1", bits=16),
            "draw_banks needs a tiled copy or a (thread, value) layout, got 32:1",
        ),
        (
            lambda: draw_banks("(4,8):(8,1)", "(4,8):(1,4)", bits=16, side="left"),
            "side must be 'src' or 'dst', got 'left'",
        ),
        (
            lambda: draw_banks("(4,8):(8,1)", "(4,8):(1,4)", bits=4),
            "an access must have whole bytes, got 1 values of 4 bits",
        ),
    ],
)
def test_undrawable_objects_are_rejected(make: object, message: str) -> None:
    with pytest.raises(DrawingError) as e:
        make()  # pyright: ignore
    assert message in str(e.value)
