"""GPU targets: chips with their limits, PTX versions, and the requirements of instructions.

A *target* is a chip and a PTX version.  A chip such as ``sm_90`` supports the instructions of all chips of smaller
numbers.  ``sm_90a`` also has architecture-specific instructions (PTX ISA, ".target"), and ``sm_100f`` those of its
family.  LLVM aborts on an instruction that the chip lacks, so ``cute-check-target`` checks these tables first.

>>> target = find_target("sm_75", "+ptx83")
>>> lacking(target, "cp.async", Needs("sm_80", "7.0"))
'sm_75 has no cp.async, which needs sm_80'
>>> lacking(target, "ldmatrix", Needs("sm_75", "6.5")) is None
True

Source: PTX ISA 9.0, the sections "Target ISA Notes" and "PTX ISA Notes" of each instruction; LLVM 22, NVPTX.td.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from cute_dialect.arch.errors import ArchError

PTX_VERSIONS = (
    40, 41, 42, 43, 50, 60, 61, 62, 63, 65, 70, 71, 72, 73, 74, 75, 76, 77, 78, 80, 81, 82, 83, 84, 85, 86, 87, 88, 90,
)  # fmt: skip
"""PTX versions that LLVM 22 can emit, times ten."""

DEFAULT_PTX = 83
"""PTX version of generated kernels, unless the chip requires a newer one."""

KIB = 1 << 10
"""Bytes in a KiB."""


class Target(NamedTuple):
    """An architecture: a chip with its limits, and a PTX version.

    Limits with a default are the same for all supported chips.

    >>> TARGETS["sm_90a"].shared, TARGETS["sm_80"].shared, TARGETS["sm_89"].sm_threads
    (232448, 166912, 1536)

    Source: CUDA C Programming Guide, "Compute Capabilities", tables of technical specifications; "Thread Block
    Clusters" for the sizes of clusters.
    """

    chip: str
    """Name of the chip in ptxas and LLVM."""

    ptx: int
    """PTX version, times ten; in ``TARGETS`` the first that supports the chip."""

    sm_shared: int
    """Shared memory per SM in bytes."""

    shared: int
    """Maximum shared memory per block in bytes, static and dynamic, if the kernel opts in."""

    sm_threads: int
    """Maximum number of resident threads per SM."""

    sm_blocks: int
    """Maximum number of resident blocks per SM."""

    sms: int
    """Number of SMs, assumed if there is no GPU to query: those of the largest GPU with the chip."""

    sm_registers: int = 64 * 1024
    """Number of 32-bit registers per SM."""

    reserved_shared: int = 1 * KIB
    """Shared memory in bytes that the system reserves per block, from sm_80 on."""

    static_shared: int = 48 * KIB
    """Maximum shared memory per block in bytes without opting in, which is also the limit of static shared memory."""

    registers: int = 255
    """Maximum number of 32-bit registers per thread."""

    threads: int = 1024
    """Maximum number of threads per block."""

    threads_z: int = 64
    """Maximum number of threads of a block along z; along x and y the limit is that of the block."""

    warp: int = 32
    """Threads per warp."""

    cluster: int = 8
    """Maximum cluster size that every GPU with clusters (sm_90) supports."""

    opt_in_cluster: int = 16
    """Maximum cluster size if the kernel opts in; a GPU may support less."""

    @property
    def number(self) -> int:
        """Number of the chip: 90 for ``sm_90a``."""
        return _number(self.chip)


_TARGETS = (
    # chip, PTX, shared memory of an SM and of a block, threads and blocks of an SM, SMs
    Target("sm_50", 40, 64 * KIB, 48 * KIB, 2048, 32, 5),
    Target("sm_52", 41, 96 * KIB, 48 * KIB, 2048, 32, 24),
    Target("sm_53", 42, 64 * KIB, 48 * KIB, 2048, 32, 2),
    Target("sm_60", 50, 64 * KIB, 48 * KIB, 2048, 32, 56),
    Target("sm_61", 50, 96 * KIB, 48 * KIB, 2048, 32, 30),
    Target("sm_62", 50, 64 * KIB, 48 * KIB, 2048, 32, 2),
    Target("sm_70", 60, 96 * KIB, 96 * KIB, 2048, 32, 80),
    Target("sm_72", 61, 96 * KIB, 96 * KIB, 2048, 32, 8),
    Target("sm_75", 63, 64 * KIB, 64 * KIB, 1024, 16, 72),
    Target("sm_80", 70, 164 * KIB, 163 * KIB, 2048, 32, 108),
    Target("sm_86", 71, 100 * KIB, 99 * KIB, 1536, 16, 84),
    Target("sm_87", 74, 164 * KIB, 163 * KIB, 1536, 16, 16),
    Target("sm_88", 90, 100 * KIB, 99 * KIB, 1536, 16, 84),
    Target("sm_89", 78, 100 * KIB, 99 * KIB, 1536, 24, 142),
    Target("sm_90", 78, 228 * KIB, 227 * KIB, 2048, 32, 132),
    Target("sm_90a", 80, 228 * KIB, 227 * KIB, 2048, 32, 132),
    Target("sm_100", 86, 228 * KIB, 227 * KIB, 2048, 32, 148),
    Target("sm_100a", 86, 228 * KIB, 227 * KIB, 2048, 32, 148),
    Target("sm_100f", 88, 228 * KIB, 227 * KIB, 2048, 32, 148),
    Target("sm_101", 86, 228 * KIB, 227 * KIB, 1536, 24, 20),
    Target("sm_101a", 86, 228 * KIB, 227 * KIB, 1536, 24, 20),
    Target("sm_101f", 88, 228 * KIB, 227 * KIB, 1536, 24, 20),
    Target("sm_103", 88, 228 * KIB, 227 * KIB, 2048, 32, 160),
    Target("sm_103a", 88, 228 * KIB, 227 * KIB, 2048, 32, 160),
    Target("sm_103f", 88, 228 * KIB, 227 * KIB, 2048, 32, 160),
    Target("sm_110", 90, 228 * KIB, 227 * KIB, 1536, 24, 20),
    Target("sm_110a", 90, 228 * KIB, 227 * KIB, 1536, 24, 20),
    Target("sm_110f", 90, 228 * KIB, 227 * KIB, 1536, 24, 20),
    Target("sm_120", 87, 100 * KIB, 99 * KIB, 1536, 24, 188),
    Target("sm_120a", 87, 100 * KIB, 99 * KIB, 1536, 24, 188),
    Target("sm_120f", 88, 100 * KIB, 99 * KIB, 1536, 24, 188),
    Target("sm_121", 88, 100 * KIB, 99 * KIB, 1536, 24, 48),
    Target("sm_121a", 88, 100 * KIB, 99 * KIB, 1536, 24, 48),
    Target("sm_121f", 88, 100 * KIB, 99 * KIB, 1536, 24, 48),
)

TARGETS: Mapping[str, Target] = {target.chip: target for target in _TARGETS}
"""Chip -> target.  The guide has no column for sm_88, which gets the limits of sm_86, the smallest of its generation.
sm_101 is an earlier name of sm_110. The numbers of SMs are those of GTX 750 Ti, M40, Tegra X1, P100, P40, TX2, V100,
Xavier, RTX 8000, A100, A40, Orin, L40, H100 SXM, B200, B300, Thor, RTX PRO 6000 Blackwell and GB10."""

DEFAULT_CHIP = "sm_90a"
"""Chip for which code is generated by default."""

NEWEST_ATOMS = "sm_90a"
"""The newest chip whose instructions are supported. Code can be generated for all chips in ``TARGETS``. Later chips
are limited to the instructions of ``sm_90`` and to 256-bit copies: tcgen05 and tensor memory have no atoms."""

DEFAULT_TARGET = TARGETS[DEFAULT_CHIP]
"""Target whose limits apply if no chip is known: in kernel generators and in the interpreter."""


class Needs(NamedTuple):
    """Requirements of an instruction: the first chip (or the only one, ``sm_90a``), and the first PTX version."""

    arch: str
    ptx: str


def _number(chip: str) -> int:
    return int(re.sub(r"\D", "", chip))


def default_features(chip: str) -> str:
    """Return the default features of a chip: ``+ptx83``, or the first PTX version that supports the chip.

    >>> default_features("sm_90a"), default_features("sm_120")
    ('+ptx83', '+ptx87')
    """
    return f"+ptx{max(DEFAULT_PTX, TARGETS[chip].ptx if chip in TARGETS else 0)}"


def find_target(chip: str, features: str = "") -> Target:
    """Return the target of a chip and its features.

    Args:
        chip: name of the chip, such as ``sm_90a``.
        features: list such as ``+ptx83``, in which the newest version counts.  The default is the first PTX version
            that supports the chip.

    Raises:
        ArchError: the chip or a feature is unknown, or the version does not support the chip.
    """
    if chip not in TARGETS:
        raise ArchError(f"expected one of {', '.join(TARGETS)}, got {chip!r}", "chip")
    target = TARGETS[chip]
    if not features:
        return target
    version = 0
    for feature in features.split(","):
        found = re.fullmatch(r"\+ptx(\d{2})", feature)
        if found is None or int(found[1]) not in PTX_VERSIONS:
            known = ", ".join(f"+ptx{known}" for known in PTX_VERSIONS)
            raise ArchError(f"expected one of {known}, got {feature!r}", "features")
        version = max(version, int(found[1]))
    if version < target.ptx:
        raise ArchError(f"{chip} needs +ptx{target.ptx} or later, got {features!r}", "features")
    return target._replace(ptx=version)


def lacking(target: Target, what: str, needs: Needs) -> str | None:
    """Return the reason why a target lacks an instruction, or None if it has it.

    >>> lacking(find_target("sm_100"), "wgmma", Needs("sm_90a", "8.0"))
    'sm_100 has no wgmma, which needs sm_90a'
    >>> lacking(find_target("sm_90", "+ptx78"), "elect.sync", Needs("sm_90", "8.0"))
    'PTX 7.8 has no elect.sync, which needs 8.0: features=+ptx80 or later'
    """
    if target.chip != needs.arch and (needs.arch[-1] in "af" or target.number < _number(needs.arch)):
        return f"{target.chip} has no {what}, which needs {needs.arch}"
    version = int(needs.ptx.replace(".", ""))
    if target.ptx < version:
        return (
            f"PTX {target.ptx // 10}.{target.ptx % 10} has no {what}, which needs {needs.ptx}: "
            f"features=+ptx{version} or later"
        )
    return None


INSTRUCTIONS: Mapping[str, Needs] = {
    "barrier.cluster": Needs("sm_90", "7.8"),
    "bulk": Needs("sm_90", "8.0"),
    "cluster": Needs("sm_90", "7.8"),
    "clusterlaunchcontrol": Needs("sm_100", "8.6"),
    "cp.async": Needs("sm_80", "7.0"),
    "cp.async.bulk": Needs("sm_90", "8.0"),
    "cp.reduce.async.bulk": Needs("sm_90", "8.0"),
    "createpolicy": Needs("sm_80", "7.4"),
    "dot.accumulate": Needs("sm_61", "5.0"),
    "dp2a": Needs("sm_61", "5.0"),
    "dp4a": Needs("sm_61", "5.0"),
    "elect": Needs("sm_90", "8.0"),
    "fence.mbarrier": Needs("sm_90", "8.0"),
    "fence.proxy.async": Needs("sm_90", "8.0"),
    "griddepcontrol": Needs("sm_90", "7.8"),
    "ldmatrix": Needs("sm_75", "6.5"),
    "map.cluster": Needs("sm_90", "7.8"),
    "mapa": Needs("sm_90", "7.8"),
    "mbarrier": Needs("sm_80", "7.0"),
    "mbarrier.arrive.cluster": Needs("sm_90", "8.0"),
    "mbarrier.arrive.expect": Needs("sm_90", "8.0"),
    "mbarrier.arrive.shared::cluster": Needs("sm_90", "8.0"),
    "mbarrier.expect": Needs("sm_90", "8.0"),
    "mbarrier.try.wait": Needs("sm_90", "7.8"),
    "mbarrier.wait": Needs("sm_90", "7.8"),
    "mma": Needs("sm_70", "6.4"),
    "mma.sp": Needs("sm_80", "7.1"),
    "movmatrix": Needs("sm_75", "7.8"),
    "multimem": Needs("sm_90", "8.1"),
    "prefetch.tensormap": Needs("sm_90", "8.0"),
    "read.ptx.sreg.cluster": Needs("sm_90", "7.8"),
    "red.async": Needs("sm_90", "8.1"),
    "reduce.async": Needs("sm_90", "8.1"),
    "redux.sync": Needs("sm_80", "7.0"),
    "setmaxnreg": Needs("sm_90a", "8.0"),
    "setmaxregister": Needs("sm_90a", "8.0"),
    "st.async": Needs("sm_90", "8.1"),
    "stmatrix": Needs("sm_90", "7.8"),
    "store.async": Needs("sm_90", "8.1"),
    "tanh.approx": Needs("sm_75", "7.0"),
    "tcgen05": Needs("sm_100a", "8.6"),
    "tma": Needs("sm_90", "8.0"),
    "wgmma": Needs("sm_90a", "8.0"),
}
"""Requirements by prefix of the instruction's name in PTX, in the nvvm dialect and in ``cute_nvgpu.arch``.  Names are
looked up with ``_`` replaced by ``.``, and the longest matching prefix applies.
"""

_LONGEST = max(name.count(".") for name in INSTRUCTIONS) + 1


def instruction_needs(name: str) -> Needs | None:
    """Return the requirements of an instruction or op by its name without dialect; None if every chip has it.

    >>> instruction_needs("mbarrier.try_wait.parity"), instruction_needs("bar.sync")
    (Needs(arch='sm_90', ptx='7.8'), None)
    """
    words = name.replace("_", ".").split(".")
    for n in range(min(_LONGEST, len(words)), 0, -1):
        found = INSTRUCTIONS.get(".".join(words[:n]))
        if found is not None:
            return found
    return None


_MNEMONIC = re.compile(r"(?:^|[;{\n])\s*(?:@!?[%$\w]+\s+)?([a-z][\w.:]*)")


def mnemonics(ptx: str) -> list[str]:
    """Return the names of the instructions in a piece of PTX.

    >>> mnemonics("{ .reg .pred p; @p mbarrier.try_wait.b64 p, [$0]; }")
    ['mbarrier.try_wait.b64']
    """
    return _MNEMONIC.findall(ptx)
