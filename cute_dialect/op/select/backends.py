"""Backends: the families of GEMM kernels, and the GPUs that run them.

A family is one record of :data:`BACKENDS`.  Plans ask it for the compute capabilities (``kernel_cc``) that allow its
kernels, and calls ask it whether a GPU runs them.

>>> WGMMA.is_allowed(90), WGMMA.is_allowed(89), MMA_SYNC.is_allowed(89)
(True, False, True)
>>> WGMMA.runs_on((9, 0)), WGMMA.runs_on((10, 0)), MMA_SYNC.runs_on((10, 0))
(True, False, True)
>>> SM120.is_allowed(120), WGMMA.is_allowed(120), MMA_SYNC.is_allowed(120)
(True, False, True)
>>> unmeasured(100).target, unmeasured(103).target, unmeasured(90)
('sm_100a', 'sm_103a', None)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, SupportsIndex

from cute_dialect.arch.targets import DEFAULT_CHIP, TARGETS
from cute_dialect.kernels.common.elements import BITS, FACTORS
from cute_dialect.kernels.gemm.sm100 import Sm100Config
from cute_dialect.kernels.gemm.sm120 import Sm120Config
from cute_dialect.op.errors import ArgumentError, LayoutError, UnsupportedError
from cute_dialect.op.keywords import similar

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.select.configurations import Configured, KernelRequest


class Backend(NamedTuple):
    """A family of kernels that needs the same GPUs."""

    name: str  # of the instruction that needs these GPUs
    capability: tuple[int, int]  # the first compute capability that has the instruction
    configs: tuple[str, ...]  # names of the types of its configurations, which need not be imported
    specific: bool = False  # the instruction is architecture-specific: later GPUs do not run the kernels
    target: str = ""  # chip for which the kernels are compiled; empty for that of the GPU
    status: str = ""  # reason for caution that explanations report

    @property
    def has_tensor_memory(self) -> bool:
        """True if the accumulators are in tensor memory."""
        return self.name == SM100.name

    def on(self, major: int, minor: int) -> Backend:
        """Return the same family, compiled for another chip."""
        return self._replace(capability=(major, minor), target=f"sm_{major}{minor}a")

    @property
    def chip(self) -> int:
        """The compute capability as a number, such as 90."""
        major, minor = self.capability
        return 10 * major + minor

    def is_allowed(self, kernel_cc: int) -> bool:
        """Return True if a plan for a compute capability may use the kernels."""
        return kernel_cc == self.chip if self.specific else kernel_cc >= self.chip

    def runs_on(self, capability: tuple[int, int]) -> bool:
        """Return True if a GPU with a compute capability runs the kernels."""
        return capability == self.capability if self.specific else capability >= self.capability

    def check_gpu(self, capability: tuple[int, int], call: str = "") -> None:
        """Raise UnsupportedError if a GPU does not run the kernels; ``call`` is the name of the function."""
        if not self.runs_on(capability):
            (major, minor), where = capability, f"{call}: " if call else ""
            is_plan = call[:1].isupper()
            plan = call.partition(".")[0] if is_plan else PLANS.get(call, "")
            of_plan = (
                KERNEL_CCS if call == "mm_array" else PLAN_CCS.get(plan, KERNEL_CCS)
            )  # Lists have no tcgen05 kernels.
            known = of_plan if plan else ()
            usable = (b.chip for b in (*UNMEASURED, WGMMA, MMA_SYNC) if b.runs_on(capability) and b.chip in known)
            chip = next(usable, None)
            cure = "" if chip is None else f"{'' if is_plan else f'op.{plan} with '}kernel_cc={chip}, or "
            raise UnsupportedError(
                f"{where}{self.name} kernels need sm_{self.chip}, but the GPU is sm_{major}{minor}; "
                f'use {cure}device="cpu"'
            )

    def supports(self, asked: KernelRequest, call: str = "Gemm") -> bool:
        """Return True if wgmma multiplies such elements.  Raises LayoutError for layouts that it does not support."""
        if asked.element not in FACTORS:
            return False
        wanted = (("A", asked.layout_a, "row", asked.element_a), ("B", asked.layout_b, "column", asked.element_b))
        for name, layout, along_k, element in wanted:
            if BITS[element] != 16 and layout != along_k:
                what = "8-bit operands" if BITS[element] == 8 else "operands of tf32"
                raise LayoutError(
                    f"{call}: {name} is {layout}-major, but wgmma reads {what} along K only ({element}); "
                    "make it contiguous along K, or use mm()"
                )
        return True


WGMMA = Backend("wgmma", (9, 0), ("Choice", "ConvConfig"), specific=True)
"""Warp-group MMA with TMA loads."""
SIMT = Backend("TMA", (9, 0), ("ExactConfig",), specific=True)
"""FMAs of f32 with TMA loads."""
MMA_SYNC = Backend("mma.sync", (8, 0), ("AmpereConfig", "WarpConfig", "SgemmRung"))
"""MMA of one warp with cp.async loads, and kernels for any GPU since sm_80."""

NEVER_RUN = "assembled and interpreted, never run on the chip"
SM100 = Backend(
    "tcgen05", (10, 0), ("Sm100Config", "Sm100Attention"), specific=True, target="sm_100a", status=NEVER_RUN
)
"""MMA with accumulators in tensor memory, and TMA loads."""
SM120 = Backend("sm_120", (12, 0), ("Sm120Config",), specific=True, target="sm_120a", status=NEVER_RUN)
"""MMA of one warp with TMA loads, and the MMAs of sm_120 on 8-bit floats."""

UNMEASURED = (SM100, SM100.on(10, 3), SM100.on(11, 0), SM120, SM120.on(12, 1))
"""The backends of chips without measured costs."""
BACKENDS = (WGMMA, SIMT, MMA_SYNC, *UNMEASURED)
"""All backends."""
LATEST = WGMMA
"""The backend of plans that select no compute capability."""
KERNEL_CCS = tuple(sorted({t.number for t in TARGETS.values() if MMA_SYNC.chip <= t.number <= LATEST.chip}))
"""The compute capabilities that every plan can select by ``kernel_cc``."""
GEMM_CCS = (*KERNEL_CCS, *[b.chip for b in UNMEASURED])
"""The compute capabilities that a plan of single GEMMs can select."""
GROUPED_CCS = (*KERNEL_CCS, *[b.chip for b in UNMEASURED if b.has_tensor_memory])
"""The compute capabilities that a plan of grouped GEMMs can select."""
ATTENTION_CCS = (LATEST.chip, *[b.chip for b in UNMEASURED if b.has_tensor_memory])
"""The compute capabilities that a plan of attention can select."""
PLAN_CCS = {"Gemm": GEMM_CCS, "GroupedGemm": GROUPED_CCS, "Attention": ATTENTION_CCS, "ScaledGemm": ATTENTION_CCS}
"""Plan -> the compute capabilities that it can select, if they are not those of every plan."""
PLANS = {
    "": "Gemm",
    **dict.fromkeys(("mm_array", "grouped_mm"), "GroupedGemm"),
    **{"conv2d": "Conv2dFprop", "conv2d_input": "Conv2dDgrad", "conv2d_weight": "Conv2dWgrad"},
}
"""Function -> the plan that computes it by kernels for other GPUs."""


def unmeasured(kernel_cc: int) -> Backend | None:
    """Return the backend of a plan for a chip without measured costs, or None for another compute capability."""
    return next((b for b in UNMEASURED if b.is_allowed(kernel_cc)), None)


def of_tensor_memory(capability: tuple[int, int]) -> Backend | None:
    """Return the backend of a GPU with tensor memory, or None for another GPU.

    >>> of_tensor_memory((10, 3)).target, of_tensor_memory((12, 0))
    ('sm_103a', None)
    """
    return next((b for b in UNMEASURED if b.has_tensor_memory and b.runs_on(capability)), None)


def selected_cc(call: str, chip: object, kernel_cc: object, known: Sequence[int] = KERNEL_CCS) -> int:
    """Return the compute capability that ``chip`` or ``kernel_cc`` of a plan selects, by default that of wgmma.

    Raises UnsupportedError for values other than ``known``, and if the two arguments differ.

    >>> selected_cc("Gemm", None, 80), selected_cc("Gemm", None, None)
    (80, 90)
    """
    *others, last = known
    cure = f"use {', '.join(map(str, others))} or {last}"
    given = {name: x for name, x in (("kernel_cc", kernel_cc), ("chip", chip)) if x is not None}
    for name, x in given.items():
        if isinstance(x, bool) or not isinstance(x, SupportsIndex):
            raise UnsupportedError(f"{call}: {name}={x!r} is not a compute capability; {cure}")
        if int(x) not in known:
            raise UnsupportedError(f"{call}: {name}={int(x)} is not supported; {cure}")
    if len({int(x) for x in given.values() if isinstance(x, SupportsIndex)}) > 1:
        raise UnsupportedError(f"{call}: chip={chip} and kernel_cc={kernel_cc} differ; pass one of them")
    return next((int(x) for x in given.values() if isinstance(x, SupportsIndex)), LATEST.chip)


_NAMES: tuple[tuple[str, tuple[int, int]], ...] = (
    (r"V100|TITAN V", (7, 0)),
    (r"T4|RTX 20\d\d|GTX 16\d\d|Quadro RTX \d000|TITAN RTX", (7, 5)),
    (r"L40S?|L4|L20|RTX 40\d\d|RTX \d\d00( SFF)? Ada", (8, 9)),
    (r"A100|A800|A30", (8, 0)),
    (r"A40|A10G?|A16|A2|RTX 30\d\d|RTX A\d\d00", (8, 6)),
    (r"Orin", (8, 7)),
    (r"G?H[128]00|H20", (9, 0)),
    (r"G?B[12]00", (10, 0)),
    (r"G?B300", (10, 3)),
    (r"Thor", (11, 0)),
    (r"RTX 50\d\d|RTX PRO \d000", (12, 0)),
    (r"GB10", (12, 1)),
)
"""Words of a GPU's name -> its compute capability.  The first line that matches decides."""

_SUGGESTED = (
    "NVIDIA H200",
    "NVIDIA H100",
    "NVIDIA GH200",
    "NVIDIA B200",
    "NVIDIA GB200",
    "NVIDIA B300",
    "NVIDIA GB300",
    "NVIDIA Thor",
    "NVIDIA GeForce RTX 5090",
    "NVIDIA GB10",
    "NVIDIA A100",
    "NVIDIA L40S",
    "NVIDIA GeForce RTX 4090",
    "NVIDIA GeForce RTX 3090",
)
"""Names that errors suggest."""


def suggested_gpu(text: str) -> str:
    """Return a name of a GPU for a text that is none: by its target, its words, or the spelling; "" if none is similar.

    >>> suggested_gpu("sm_100a"), suggested_gpu("b200"), suggested_gpu("NVIDIA B20"), suggested_gpu("nope")
    ('NVIDIA B200', 'NVIDIA B200', 'NVIDIA B200', '')
    """
    target = re.fullmatch(r"(?:sm|compute)_?(\d+)(\d)[af]?", text)
    capability = (int(target[1]), int(target[2])) if target else capability_named(text.upper())
    if capability is not None:
        return next((name for name in _SUGGESTED if capability_named(name) == capability), "")
    short = {name.removeprefix("NVIDIA "): name for name in reversed(_SUGGESTED)}
    found = similar(re.sub("nvidia ?", "", text, flags=re.IGNORECASE), short)
    return short[found[0]] if found else ""


def unknown_gpu(gpu: str) -> ArgumentError:
    """Return the error of ``op.explain`` for a GPU whose compute capability is unknown."""
    near = suggested_gpu(gpu)
    cure = "pass a name such as 'NVIDIA H200', 'NVIDIA B200' or 'NVIDIA GeForce RTX 5090'"
    return ArgumentError(
        f"explain: gpu is {gpu!r}, whose compute capability is unknown; {f'did you mean {near!r}?' if near else cure}"
    )


def capability_named(gpu: str) -> tuple[int, int] | None:
    """Return the compute capability of a GPU with a name, or None for an unknown one.

    >>> capability_named("NVIDIA B200"), capability_named("NVIDIA GB300"), capability_named("NVIDIA H200 NVL")
    ((10, 0), (10, 3), (9, 0))
    >>> capability_named("B2000")
    """
    return next((found for words, found in _NAMES if re.search(rf"\b({words})\b", gpu)), None)


def backend_of(kernel: Configured) -> Backend:
    """Return the backend of a configuration."""
    name = type(kernel).__name__
    target = kernel.chip if isinstance(kernel, Sm100Config | Sm120Config) else ""
    return next((b for b in BACKENDS if name in b.configs and target in ("", b.target)), MMA_SYNC)


def chip_of(capability: tuple[int, int]) -> str:
    """Return the target of kernels for a GPU, or "" for the default target.

    >>> chip_of((9, 0)), chip_of((8, 9))
    ('', 'sm_89')
    """
    major, minor = capability
    return "" if DEFAULT_CHIP.rstrip("a") == f"sm_{major}{minor}" else f"sm_{major}{minor}"
