"""GPU targets: chips with their limits, PTX versions, and the requirements of instructions.

A *target* is a chip and a PTX version.  A chip such as ``sm_90`` supports the instructions of all chips of smaller
numbers.  ``sm_90a`` also has architecture-specific instructions (PTX ISA, ".target").  ``sm_100f`` has those of its
*family*, which later chips of the family keep.  LLVM aborts on an instruction that the chip lacks, so
``cute-check-target`` checks these tables first.

>>> target = find_target("sm_75", "+ptx83")
>>> lacking(target, "cp.async", Needs("sm_80", "7.0"))
'sm_75 has no cp.async, which needs sm_80'
>>> lacking(target, "ldmatrix", Needs("sm_75", "6.5")) is None
True
>>> has_arch("sm_103a", "sm_100f|sm_110f"), has_arch("sm_120a", "sm_100f|sm_110f")
(True, False)

Source: PTX ISA 9.0, the sections "Target ISA Notes" and "PTX ISA Notes" of each instruction; LLVM 22, NVPTX.td; for
sm_100 and later, ptxas 13.5 itself (``test/unit/arch/test_targets_in_ptxas.py`` compares them).
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

BLACKWELL_PTX = 88
"""PTX version of generated kernels for sm_100 and later: block sizes of scales, 256-bit copies, 3-input maxima."""

FAMILIES = ((100, 103, 107), (110,), (120, 121))
"""Chips of each family, by number.  An ``f`` target runs on its chip and on the later chips of the family."""

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

    @property
    def family(self) -> tuple[int, ...]:
        """Numbers of the chips of the family; empty before sm_100.

        >>> TARGETS["sm_103a"].family, TARGETS["sm_90a"].family
        ((100, 103, 107), ())
        """
        return next((family for family in FAMILIES if self.number in family), ())

    @property
    def tmem_columns(self) -> int:
        """Columns of tensor memory per SM, of 128 lanes and 32 bits: 512 or 0.

        >>> TARGETS["sm_100f"].tmem_columns, TARGETS["sm_100"].tmem_columns, TARGETS["sm_120a"].tmem_columns
        (512, 0, 0)
        """
        return 512 if has_arch(self.chip, TCGEN05) else 0

    @property
    def has_clusters(self) -> bool:
        """True if a cluster may have more than one block."""
        return self.opt_in_cluster > 1

    @property
    def has_2sm(self) -> bool:
        """True if two blocks of a cluster can execute one MMA together (``cta_group::2``)."""
        return self.tmem_columns > 0


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
    Target("sm_103", 88, 228 * KIB, 227 * KIB, 2048, 32, 160),
    Target("sm_103a", 88, 228 * KIB, 227 * KIB, 2048, 32, 160),
    Target("sm_103f", 88, 228 * KIB, 227 * KIB, 2048, 32, 160),
    Target("sm_110", 90, 228 * KIB, 227 * KIB, 1536, 24, 20),
    Target("sm_110a", 90, 228 * KIB, 227 * KIB, 1536, 24, 20),
    Target("sm_110f", 90, 228 * KIB, 227 * KIB, 1536, 24, 20),
    Target("sm_120", 87, 100 * KIB, 99 * KIB, 1536, 24, 188, cluster=1, opt_in_cluster=1),
    Target("sm_120a", 87, 100 * KIB, 99 * KIB, 1536, 24, 188, cluster=1, opt_in_cluster=1),
    Target("sm_120f", 88, 100 * KIB, 99 * KIB, 1536, 24, 188, cluster=1, opt_in_cluster=1),
    Target("sm_121", 88, 100 * KIB, 99 * KIB, 1536, 24, 48, cluster=1, opt_in_cluster=1),
    Target("sm_121a", 88, 100 * KIB, 99 * KIB, 1536, 24, 48, cluster=1, opt_in_cluster=1),
    Target("sm_121f", 88, 100 * KIB, 99 * KIB, 1536, 24, 48, cluster=1, opt_in_cluster=1),
)

TARGETS: Mapping[str, Target] = {target.chip: target for target in _TARGETS}
"""Chip -> target.  The guide has no column for sm_88, which gets the limits of sm_86, the smallest of its generation.
sm_101, the earlier name of sm_110, is left out, because ptxas 13.5 does not know it.  PTX with clusters assembles for
sm_120, but nothing states that the GPUs run them.  The numbers of SMs are those of GTX 750 Ti, M40, Tegra X1, P100,
P40, TX2, V100, Xavier, RTX 8000, A100, A40, Orin, L40, H100 SXM, B200, B300, Thor, RTX PRO 6000 Blackwell and GB10."""

DEFAULT_CHIP = "sm_90a"
"""Chip for which code is generated by default."""

DEFAULT_TARGET = TARGETS[DEFAULT_CHIP]
"""Target whose limits apply if no chip is known: in kernel generators and in the interpreter."""


class Needs(NamedTuple):
    """Requirements of an instruction: chips and the first PTX version."""

    arch: str
    """Rule of the chips: alternatives such as ``sm_100f|sm_110f``; see :func:`has_arch`."""

    ptx: str


TCGEN05 = "sm_100f|sm_110f"
"""Chips with tensor memory and ``tcgen05`` instructions."""
BLACKWELL = "sm_100f|sm_110f|sm_120f"
"""Chips with the instructions that all families have."""


def has_arch(chip: str, rule: str) -> bool:
    """Return True if a chip satisfies a rule: one of the alternatives, which ``|`` separates.

    ``sm_90`` includes that chip and all later ones.  ``sm_90a`` is one target.  ``sm_100f`` includes the targets
    ``f`` and ``a`` of sm_100 and of the later chips of its family.

    >>> [has_arch(chip, "sm_100f") for chip in ("sm_100", "sm_100a", "sm_103f", "sm_110f")]
    [False, True, True, False]
    >>> has_arch("sm_121f", "sm_120"), has_arch("sm_121f", "sm_120a")
    (True, False)
    """
    return any(_is_met(chip, one) for one in rule.split("|"))


def _is_met(chip: str, wanted: str) -> bool:
    if chip == wanted:
        return True
    number, first = _number(chip), _number(wanted)
    if wanted[-1] == "f":
        return chip[-1] in "af" and number >= first and any({number, first} <= set(family) for family in FAMILIES)
    return wanted[-1] != "a" and number >= first


def name_chips(rule: str) -> str:
    """Return the chips of a rule as text.  Without an ``f`` target the rule itself has them.

    >>> name_chips("sm_80"), name_chips("sm_100f")
    ('sm_80', 'sm_100a/f or sm_103a/f')
    """
    wanted = rule.split("|")
    if any(one[-1] == "f" for one in wanted):
        known = [chip for chip in TARGETS if chip[-1] in "af" and has_arch(chip, rule)]
        numbers = dict.fromkeys(_number(chip) for chip in known)
        wanted = [f"sm_{n}{'/'.join(c[-1] for c in known if _number(c) == n)}" for n in numbers]
    return wanted[0] if len(wanted) == 1 else f"{', '.join(wanted[:-1])} or {wanted[-1]}"


def _number(chip: str) -> int:
    return int(re.sub(r"\D", "", chip))


def default_features(chip: str) -> str:
    """Return the default features of a chip: ``+ptx83``, from sm_100 on ``+ptx88``, or the first that supports it.

    >>> default_features("sm_90a"), default_features("sm_120"), default_features("sm_110a")
    ('+ptx83', '+ptx88', '+ptx90')
    """
    if chip not in TARGETS:
        return f"+ptx{DEFAULT_PTX}"
    target = TARGETS[chip]
    return f"+ptx{max(BLACKWELL_PTX if target.family else DEFAULT_PTX, target.ptx)}"


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
    if not has_arch(target.chip, needs.arch):
        return f"{target.chip} has no {what}, which needs {name_chips(needs.arch)}"
    version = int(needs.ptx.replace(".", ""))
    if target.ptx < version:
        return (
            f"PTX {target.ptx // 10}.{target.ptx % 10} has no {what}, which needs {needs.ptx}: "
            f"features=+ptx{version} or later"
        )
    return None


LOAD_REDUCTIONS = "sm_103f|sm_110f"
"""Requirement of the loads of tensor memory that also reduce the columns of a lane."""

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
    "mma.block.scale": Needs("sm_120f", "8.7"),
    "mma.sp": Needs("sm_80", "7.1"),
    "mma.sp.block.scale": Needs("sm_120f", "8.7"),
    "movmatrix": Needs("sm_75", "7.8"),
    "multimem": Needs("sm_90", "8.1"),
    "prefetch.tensormap": Needs("sm_90", "8.0"),
    "read.ptx.sreg.cluster": Needs("sm_90", "7.8"),
    "red.async": Needs("sm_90", "8.1"),
    "reduce.async": Needs("sm_90", "8.1"),
    "redux.sync": Needs("sm_80", "7.0"),
    "setmaxnreg": Needs(f"sm_90a|{BLACKWELL}", "8.0"),
    "setmaxregister": Needs(f"sm_90a|{BLACKWELL}", "8.0"),
    "st.async": Needs("sm_90", "8.1"),
    "st.bulk": Needs("sm_100", "8.6"),
    "stmatrix": Needs("sm_90", "7.8"),
    "store.async": Needs("sm_90", "8.1"),
    "tanh.approx": Needs("sm_75", "7.0"),
    "tcgen05": Needs(TCGEN05, "8.6"),
    "tmem": Needs(TCGEN05, "8.6"),
    "tcgen05.ld.red": Needs(LOAD_REDUCTIONS, "8.8"),
    "tmem.load.red": Needs(LOAD_REDUCTIONS, "8.8"),
    "tcgen05.shift": Needs("sm_100a|sm_103a|sm_110a", "8.6"),
    "tensormap.replace": Needs(f"sm_90a|{BLACKWELL}", "8.3"),
    "tma": Needs("sm_90", "8.0"),
    "wgmma": Needs("sm_90a", "8.0"),
}
"""Requirements by prefix of the instruction's name in PTX, in the nvvm dialect and in ``cute_nvgpu.arch``.  Names are
looked up with ``_`` replaced by ``.``, and the longest matching prefix applies.
"""

_LONGEST = max(name.count(".") for name in INSTRUCTIONS) + 1


class Modified(NamedTuple):
    """An instruction with a modifier, a type or an operand that fewer chips have than the instruction itself."""

    prefix: str
    """Beginning of the name, as in :data:`INSTRUCTIONS`."""

    words: tuple[str, ...]
    """Parts of the name, with their periods.  All of them occur; ``kind::`` is left out."""

    needs: Needs

    operands: int | None = None
    """Number of operands outside of braces in PTX; None matches any."""


_SPECIFIC = Needs("sm_100a|sm_103a|sm_110a", "8.6")
_TENSOR, _ANY_FAMILY = Needs(TCGEN05, "8.6"), Needs(BLACKWELL, "8.6")
_WIDE, _PACKED = Needs("sm_100", "8.8"), Needs("sm_100", "8.6")
_WARP, _WARP_SPECIFIC = Needs("sm_120f", "8.7"), Needs("sm_120a|sm_121a", "8.7")

MODIFIED: tuple[Modified, ...] = (
    Modified("tcgen05.mma", (".i8.",), Needs("sm_100a|sm_110a", "8.6")),
    Modified("tcgen05.mma", (".block16.",), Needs(TCGEN05, "8.8")),
    Modified("tcgen05.mma", (".block32.",), Needs(TCGEN05, "8.8")),
    Modified("tcgen05.mma", (".scale.vec::",), _SPECIFIC),
    Modified("tcgen05.mma", (".mxf4nvf4.", ".scale.vec::"), _SPECIFIC._replace(ptx="8.7")),
    Modified("tcgen05.mma", (".scale.d.",), Needs("sm_100f", "8.6")),
    Modified("tcgen05.mma.cta", (".f16.",), Needs("sm_100f", "8.6"), operands=6),
    Modified("tcgen05.mma.cta", (".tf32.",), Needs("sm_100f", "8.6"), operands=6),
    Modified("tcgen05.mma.sp.cta", (".f16.",), Needs("sm_100f", "8.6"), operands=7),
    Modified("tcgen05.mma.sp.cta", (".tf32.",), Needs("sm_100f", "8.6"), operands=7),
    Modified("tcgen05.mma.sp", (".mxf4.",), _SPECIFIC),
    Modified("tcgen05.mma.sp", (".mxf4nvf4.",), _SPECIFIC),
    Modified("clusterlaunchcontrol.try.cancel", (".multicast",), _ANY_FAMILY),
    *(Modified(name, (".f32x2.",), _PACKED) for name in ("add", "sub", "mul", "fma")),
    *(Modified(name, (".f32.",), _WIDE, operands=4) for name in ("max", "min")),
    *(
        Modified(f"{name}.global", words, _WIDE)
        for name in ("ld", "st")
        for words in ((".v8.",), *((".v4.", f".{kind}64.") for kind in "bfsu"))
    ),
    Modified("cp.async.bulk", (".cp.mask.",), _PACKED),
    Modified("st.async", (".mmio.",), Needs("sm_100", "8.7")),
    *(Modified("redux.sync", (f".{kind}.",), Needs("sm_100f", "8.6")) for kind in ("f32", "fmin", "fmax")),
    *(Modified("cvt", (f".{kind}.",), _ANY_FAMILY) for kind in ("e2m1x2", "e2m3x2", "e3m2x2", "ue8m0x2")),
    Modified("cvt.rs", (), Needs("sm_100a|sm_103a", "8.7")),
    *(Modified("ldmatrix", (f".{shape}.",), _ANY_FAMILY) for shape in ("m16n16", "m8n16")),
    Modified("stmatrix", (".m16n8.",), _ANY_FAMILY),
    *(
        Modified("multimem.ld.reduce", (f".{kind}",), Needs(f"{TCGEN05}|sm_120a|sm_121a", "8.6"))
        for kind in ("e4m3", "e5m2")
    ),
    Modified("cp.async.bulk.tensor", (".cta.group::",), _TENSOR),
    Modified("cp.async.bulk.tensor", (".gather4.",), _PACKED),
    Modified("cp.async.bulk.tensor", (".gather4.", ".shared::cluster."), _TENSOR),
    Modified("cp.async.bulk.tensor", (".scatter4.",), _TENSOR),
    Modified("cp.async.bulk.prefetch.tensor", (".gather4.",), _TENSOR),
    *(Modified("cp.async.bulk", (".tensor.", f".im2col::w{width}."), _TENSOR) for width in ("", "::128")),
    *(Modified("mma.sync", (f".{kind}.",), _WARP) for kind in ("f8f6f4", "mxf8f6f4", "mxf4", "mxf4nvf4")),
    *(Modified("mma.sp::ordered.metadata", (f".{kind}.",), _WARP) for kind in ("f8f6f4", "mxf8f6f4")),
    *(Modified("mma.sp::ordered.metadata", (f".{kind}.",), _WARP_SPECIFIC) for kind in ("mxf4", "mxf4nvf4")),
)
"""Requirements of modifiers, types and operands.  An instruction needs those of all rows that match it.

Names are those of PTX and of LLVM's intrinsics, with ``_`` replaced by ``.`` and ``tile::`` and ``kind::`` left out."""


def instruction_needs(name: str, operands: int | None = None) -> list[Needs]:
    """Return the requirements of an instruction or op by its name without dialect; none if every chip has it.

    Args:
        name: in PTX, the nvvm dialect, ``cute_nvgpu.arch``, or LLVM without ``llvm.nvvm.``.
        operands: number of operands outside of braces, if it is known.

    >>> instruction_needs("mbarrier.try_wait.parity"), instruction_needs("bar.sync")
    ([Needs(arch='sm_90', ptx='7.8')], [])
    >>> instruction_needs("redux.sync.max.f32")[-1]
    Needs(arch='sm_100f', ptx='8.6')
    """
    name = name.replace("_", ".").replace("kind::", "").replace("tile::", "")
    words = name.split(".")
    longest = (INSTRUCTIONS.get(".".join(words[:n])) for n in range(min(_LONGEST, len(words)), 0, -1))
    found = [needs for needs in longest if needs is not None][:1]
    whole = f".{name}."
    for row in MODIFIED:
        counted = row.operands is None or row.operands == operands
        if counted and name.startswith(row.prefix) and all(word in whole for word in row.words):
            found.append(row.needs)
    return found


_STATEMENT = re.compile(r"(?:^|[;{\n])\s*(?:@!?[%$\w]+\s+)?([a-z][\w.:]*)([^;\n]*)")
_BRACED = re.compile(r"\{[^{}]*\}|\[[^\[\]]*\]")


def statements(ptx: str) -> list[tuple[str, int]]:
    """Return the names of the instructions in a piece of PTX, with the number of operands outside of braces.

    >>> statements("{ .reg .pred p; @p mbarrier.try_wait.b64 p, [$0]; max.f32 $0, $1, $2, $3; }")
    [('mbarrier.try_wait.b64', 2), ('max.f32', 4)]
    """
    found: list[tuple[str, int]] = []
    for name, rest in _STATEMENT.findall(ptx):
        # A vector in braces is one operand, except for the mask of disabled lanes of tcgen05.mma.
        vector = "" if name.startswith("tcgen05.mma") else "x"
        text = _BRACED.sub(lambda found, v=vector: "x" if found[0][0] == "[" else v, rest)
        found.append((name, sum(bool(part.strip()) for part in text.split(","))))
    return found
