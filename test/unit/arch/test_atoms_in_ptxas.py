"""ptxas assembles each row of the atom table for exactly the GPUs and PTX versions that the row states."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from arch_support import assemble, copy_kernel, header, mma_kernel

from cute_dialect.arch import ATOMS, MmaAtom
from cute_dialect.arch.atom import Atom
from cute_dialect.arch.table import generated_names
from cute_dialect.arch.tcgen05 import find_tcgen05

# The first PTX version that supports each chip. ptxas 13 supports no chip older than sm_75.
CHIPS = {
    **{"sm_75": "6.3", "sm_80": "7.0", "sm_89": "7.8", "sm_90": "7.8", "sm_90a": "8.0", "sm_100": "8.6"},
    **{"sm_120f": "8.8", "sm_120a": "8.7", "sm_100f": "8.8"},
}
OLDER_CHIP = {
    **{"sm_80": "sm_75", "sm_89": "sm_86", "sm_90": "sm_89", "sm_90a": "sm_90", "sm_100": "sm_90"},
    **{"sm_120f": "sm_120", "sm_120a|sm_121a": "sm_120f", "sm_100f|sm_110f|sm_120f": "sm_100"},
}
OLDER_VERSION = {
    "6.5": "6.4",
    "7.0": "6.5",
    "7.1": "7.0",
    "7.8": "7.7",
    "8.0": "7.8",
    "8.2": "8.1",
    "8.4": "8.3",
    "8.5": "8.4",
    "8.7": "8.6",
    "8.8": "8.7",
}


def number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def chip_of(atom: Atom) -> str:
    first = atom.arch.partition("|")[0]
    return first if first in CHIPS else "sm_75"


def version_of(atom: Atom) -> str:
    return max(atom.ptx_version, CHIPS[chip_of(atom)], "6.4", key=number)


def kernel(atom: Atom) -> str:
    if isinstance(atom, MmaAtom):
        return mma_kernel(atom, atom.name, smem=1024)
    return copy_kernel(atom, atom.name)


def complaints(atoms: Iterable[Atom], version: str, chip: str) -> str:
    said = assemble(header(version, chip) + "".join(map(kernel, atoms)), chip)
    # sm_90 supports multicast, but ptxas prints an advisory that recommends it for sm_90a only.
    return "\n".join(line for line in said.splitlines() if "Advisory" not in line)


SMALL = [ATOMS[n] for n in ATOMS if not n.startswith(("SM90_64x", "SM90_SPARSE_64x", "SM100_TMEM_"))]
GROUPS = sorted({(chip_of(a), version_of(a)) for a in SMALL})


@pytest.mark.parametrize(("chip", "version"), GROUPS)
def test_rows_assemble(chip: str, version: str) -> None:
    assert complaints([a for a in SMALL if (chip_of(a), version_of(a)) == (chip, version)], version, chip) == ""


@pytest.mark.parametrize("version", ["8.0", "8.4"])
def test_wgmma_assembles(version: str) -> None:
    # All types, sources and majors at the smallest N, and a few at larger N.
    names = [n for n in ATOMS if n.startswith("SM90_64x8x") or (n.startswith("SM90_64x40x") and n.endswith("_SS_NT"))]
    names += ["SM90_64x256x16_F32BF16BF16_RS_TT", "SM90_64x240x32_S32S8S8_SS_TN", "SM90_64x248x8_F32TF32TF32_SS_TN"]
    rows = [ATOMS[n] for n in names]
    assert complaints([a for a in rows if a.ptx_version == version], version, "sm_90a") == ""


@pytest.mark.parametrize("version", ["8.2", "8.4"])
def test_sparse_wgmma_assembles(version: str) -> None:
    names = [n for n in ATOMS if n.startswith("SM90_SPARSE_64x8x")]
    names += ["SM90_SPARSE_64x256x32_F32BF16BF16_RS_TT", "SM90_SPARSE_64x240x64_S32S8S8_SS_TN"]
    rows = [ATOMS[n] for n in names]
    assert complaints([a for a in rows if a.ptx_version == version], version, "sm_90a") == ""


TMEM = [ATOMS[n] for n in ATOMS if n.startswith("SM100_TMEM_")]


@pytest.mark.parametrize("atoms", [TMEM[::8], pytest.param(TMEM, marks=pytest.mark.slow)], ids=["some", "all"])
def test_tensor_memory_copies_assemble(atoms: list[Atom]) -> None:
    assert len(TMEM) == 148
    assert complaints(atoms, "8.8", "sm_100f") == ""


@pytest.mark.parametrize("chip", ["sm_100a", pytest.param("sm_110a", marks=pytest.mark.slow)])
def test_tcgen05_assembles(chip: str) -> None:
    """The text of an MMA depends on the kind, the number of blocks and the memory of A only."""
    texts = {ATOMS[n].ptx: ATOMS[n] for n in generated_names() if n.startswith(("SM100_128x64x", "SM100_2SM_128x64x"))}
    assert len(texts) == 4 * 2 * 2
    assert complaints(texts.values(), "9.0", chip) == ""


@pytest.mark.parametrize("chip", ["sm_100a", pytest.param("sm_110a", marks=pytest.mark.slow)])
def test_sparse_tcgen05_assembles(chip: str) -> None:
    start = ("SM100_SPARSE_128x64x", "SM100_2SM_SPARSE_256x64x")
    texts = {ATOMS[n].ptx: ATOMS[n] for n in generated_names() if n.startswith(start)}
    assert len(texts) == 4 * 2 * 2
    scaled = [
        find_tcgen05(kind, group, (128 * group, 64, k), ("f32", a, a), form="sp", factor=("f8E8M0FNU", vec))
        for kind, k, a, vec in (
            ("mxf8f6f4", 64, "f8E4M3FN", 32),
            ("mxf4", 128, "f4E2M1FN", 32),
            ("mxf4nvf4", 128, "f4E2M1FN", 16),
        )
        for group in (1, 2)
    ]
    assert complaints([*texts.values(), *scaled], "9.0", chip) == ""
    assert "error" in complaints(scaled[2:3], "9.0", "sm_100f")


@pytest.mark.parametrize("chip", ["sm_100a", pytest.param("sm_110a", marks=pytest.mark.slow)])
def test_weight_stationary_tcgen05_assembles(chip: str) -> None:
    texts = {ATOMS[n].ptx: ATOMS[n] for n in generated_names() if n.startswith("SM100_WS_128x64x")}
    assert len(texts) == 4 * 2
    assert complaints(texts.values(), "9.0", chip) == ""


@pytest.mark.sample(every=2)
@pytest.mark.parametrize(
    "name",
    [
        "SM80_SPARSE_16x8x16_F32F16F16F32_TN",
        "SM80_SPARSE_16x8x16_F32TF32TF32F32_TN",
        "SM80_SPARSE_16x8x32_S32S8S8S32_TN",
        "SM80_SPARSE_16x8x64_S32S8S8S32_TN",
        "SM80_SPARSE_16x8x128_S32S4S4S32_TN",
        "SM90_SPARSE_64x8x32_F32F16F16_SS_TN",
        "SM90_SPARSE_64x8x16_F32TF32TF32_RS_TN",
        "SM90_SPARSE_64x8x64_S32S8S8_SS_TN",
    ],
)
def test_selectors(name: str) -> None:
    """ptxas accepts exactly the sparsity selectors in the row. It does not check those of m16n8k32 on f16."""
    atom = ATOMS[name]
    assert isinstance(atom, MmaAtom) and atom.metadata is not None
    for selector in range(5):
        text = header("8.7", "sm_90a") + mma_kernel(atom, smem=1024, selector=selector)
        assert (assemble(text, "sm_90a") == "") == (selector < atom.metadata.selectors), selector


def first_of_each_kind() -> list[Atom]:
    seen: dict[tuple[str, str, str], Atom] = {}
    for name, atom in ((n, ATOMS[n]) for n in ATOMS if not n.startswith("SM100_TMEM_")):
        turing_too = name.startswith("SM80_") and isinstance(atom, MmaAtom) and name.replace("SM80", "SM75") in ATOMS
        if not turing_too:
            seen.setdefault((atom.arch, atom.ptx_version, atom.family), atom)
    return list(seen.values())


@pytest.mark.slow
def test_atoms_need_their_ptx_version() -> None:
    checked = 0
    for atom in first_of_each_kind():
        chip = chip_of(atom)
        if number(atom.ptx_version) > max(number(CHIPS[chip]), number("6.4")):
            assert complaints([atom], OLDER_VERSION[atom.ptx_version], chip), atom.name
            checked += 1
    assert checked >= 8


def test_not_on_older_gpus() -> None:
    checked = 0
    for atom in first_of_each_kind():
        if atom.arch in OLDER_CHIP:
            older = OLDER_CHIP[atom.arch]
            version = max(version_of(atom), "7.8", CHIPS.get(older, "0"), key=number)
            assert "error" in complaints([atom], version, older), atom.name
            checked += 1
    assert checked >= 10


@pytest.mark.parametrize("n", [40, 56, 232])
def test_integer_wgmma_has_fewer_shapes(n: int) -> None:
    assert f"SM90_64x{n}x32_S32S8S8_SS_TN" not in ATOMS
    good = ATOMS["SM90_64x48x32_S32S8S8_SS_TN"]
    assert isinstance(good, MmaAtom)
    text = kernel(good).replace("m64n48k32", f"m64n{n}k32")
    assert f"Illegal matrix shape '.m64n{n}k32'" in assemble(header("8.0", "sm_90a") + text, "sm_90a")


def test_the_occupancy_report_counts_registers_and_the_report_code() -> None:
    """The register file limits the occupancy of a kernel with 128 threads and the register count that ptxas reports."""
    import numpy as np

    from cute_dialect.pipelines import compile

    module = compile("test/examples/elementwise_add.mlir", cache=False)
    kernel = next(k for c in module.artifact.code for k in c.ptxas["kernels"] if k["name"] == "add")
    assert kernel["code"] % 16 == 0 and kernel["code"] > 16 * 50
    x = np.ones((17, 129), np.float32)
    report = module.kernel("add")(x, x, x.copy(), device="cpu", reports=["occupancy"])
    registers = -(-kernel["registers"] // 8) * 8
    assert report.profile.occupancy.blocks == min(65536 // (registers * 128), 32, 2048 // 128)
