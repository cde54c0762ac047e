"""``cute-bench prologue``: time from a block's first instruction to its first load, first ``wgmma`` and end.

The GEMM kernels are those of ``cute-bench chain`` for N x N f16 matrices, with counters added to their PTX.  A block
records the clock of its SM (``%clock64``) at these points.  A row is the median over blocks and launches; it excludes
the launch time before the first instruction.
"""

from __future__ import annotations

import os
import re
import statistics
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cute_dialect.op.execute.kernels import Runner
from cute_dialect.op.select.kernel_choice import Choice
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.pipelines.ptxas import assemble
from cute_dialect.runtime import driver
from cute_dialect.runtime.artifact import save_artifact
from cute_dialect.runtime.progress import track
from cute_dialect.tools.bench.cases import chain
from cute_dialect.tools.bench.checks import check_limit
from cute_dialect.tools.bench.peers import normal
from cute_dialect.tools.bench.processes import in_processes
from cute_dialect.tools.bench.runner import Row, Say, loaded

if TYPE_CHECKING:  # pragma: no cover
    from numpy.typing import NDArray

__all__ = ["FIELDS", "build", "kernels", "run", "with_clocks"]

SIZES = (128, 256, 512, 1024, 4096)
FIELDS = ("begin", "load", "wgmma", "end", "time", "sm")
"""64-bit fields that a block records: clocks of the first instruction, first load, first ``wgmma`` and last
instruction; ``%globaltimer`` nanoseconds at the first instruction; the SM."""
_MOST = 4096
"""Maximum number of recorded blocks."""
_NEVER = (1 << 64) - 1
_GLOBAL = "block_clocks"


def kernels(size: int) -> Choice:
    """Return the kernel of a GEMM with M = N = K = ``size``."""
    return chain.kernels(size)[0]


def with_clocks(ptx: str) -> str:
    """Insert counters into the PTX of a kernel, for the first threads of the producer and of the first consumer.

    >>> text = ".address_size 64\\n.visible .entry f(\\n)\\n{\\n\\twgmma.mma_async x;\\n\\tret;\\n}\\n"
    >>> [line.strip() for line in with_clocks(text).splitlines() if "+16]" in line]
    ['@%at_consumer red.global.min.u64 [%at+16], %at_now;']
    """
    size = 8 * len(FIELDS)
    head = f""".reg .b64 %at, %at_base, %at_now; .reg .b32 %at_x, %at_block; .reg .pred %at_consumer, %at_first;
mov.u64 %at_now, %clock64; mov.u32 %at_x, %tid.x; mov.u32 %at_block, %ctaid.x;
setp.eq.u32 %at_consumer, %at_x, 128; setp.eq.u32 %at_first, %at_x, 0;
mul.wide.u32 %at, %at_block, {size}; mov.u64 %at_base, {_GLOBAL}; add.s64 %at, %at, %at_base;
@%at_first st.global.u64 [%at], %at_now; mov.u64 %at_now, %globaltimer;
@%at_first st.global.u64 [%at+{8 * FIELDS.index("time")}], %at_now; mov.u32 %at_x, %smid; cvt.u64.u32 %at_now, %at_x;
@%at_first st.global.u64 [%at+{8 * FIELDS.index("sm")}], %at_now;
"""

    def noted(field: str, how: str, thread: str) -> str:
        at = 8 * FIELDS.index(field)
        return f"mov.u64 %at_now, %clock64;\n{thread} red.global.{how}.u64 [%at+{at}], %at_now;\n"

    start = ptx.index("{\n", ptx.index(".entry")) + 2
    before, body = ptx[:start], ptx[start:]
    load = noted("load", "min", "")  # Only one thread issues loads.
    body = re.sub(r"(?m)^(.*\bcp\.async\.bulk\.tensor\S*shared)", lambda m: load + m[1], body)
    wgmma = noted("wgmma", "min", "@%at_consumer")
    body = re.sub(r"(?m)^(\s*)(wgmma\.mma_async)", lambda m: m[1] + wgmma + m[1] + m[2], body)
    body = re.sub(r"(?m)^(\s*)ret;", lambda m: noted("end", "max", "@%at_consumer") + m[0], body)
    declared = f".visible .global .align 8 .b64 {_GLOBAL}[{_MOST * len(FIELDS)}];\n"
    return re.sub(r"(?m)^(\.address_size.*)$", lambda m: f"{m[1]}\n{declared}", before, count=1) + head + body


def build(folder: str, chip: str) -> list[str]:
    """Compile the kernels into ``folder/NAME``, in parallel processes; return the reports of ptxas."""
    found = {c.name: c for c in map(kernels, SIZES)}
    return in_processes(_build_one, [(c, folder, chip) for c in found.values()], list(found))


def _build_one(job: tuple[Choice, str, str]) -> str:
    """Compile a kernel and assemble it with counters."""
    choice, folder, chip = job
    text = chain.plain_text(choice)
    artifact = compile_cute(text, chip=chip, filename=f"{choice.name}.mlir").artifact
    (code,) = artifact.code
    ptx = with_clocks(code.ptx)
    done = assemble(ptx, chip)
    code = code._replace(ptx=ptx, cubin=done.cubin, ptxas=done.to_json(), report=done.report())
    save_artifact(artifact._replace(code=(code,)), os.path.join(folder, choice.name))
    return f"{choice.name}: {done.report().strip().splitlines()[-1]}"


def run(folder: str, *, runs: int, large: bool, say: Say) -> dict[str, object]:
    """Check and measure the kernels of :func:`build`.  Raises ``BenchError`` if a result is wrong."""
    import torch

    rows: list[Row] = []
    for size in track(SIZES, "measuring", "sizes"):
        torch.manual_seed(0)
        a, b = (normal("f16", size, size) for _ in range(2))
        c = torch.full_like(a, float("nan"))
        choice = kernels(size)
        module = loaded(folder, choice.name)
        runner = Runner(choice, module)
        runner(a, b, c)
        wanted = a.double() @ b.double().t()
        check_limit(f"prologue {size}", c, wanted, 2**-9 * float(wanted.abs().max()))
        noted = [_noted(module, lambda run=runner, of=(a, b, c): run(*of)) for _ in range(runs)]
        found = medians(noted)
        for what, us in found.items():
            rows.append(
                {
                    "name": f"{size} to {what}",
                    "kernel": choice.name,
                    "ours": us,
                    "peer": None,
                    "unit": "us",
                    "ratio": None,
                }
            )
        say(f"  {size} {choice.name}: " + ", ".join([f"{field} {us:.2f} us" for field, us in found.items()]))
    return {"rows": rows}


def medians(noted: Sequence[NDArray[Any]]) -> dict[str, float]:
    """Return the microseconds from a block's first instruction to its first load, first ``wgmma`` and end.

    They are medians over blocks and launches.  Each array is (blocks, FIELDS).  The SM clock is derived
    from consecutive launches.

    >>> import numpy as np
    >>> medians([np.array([[t, t + 200, t + 400, t + 2000, t // 2, 3]], np.uint64) for t in (0, 10**6)])
    {'load': 0.1, 'wgmma': 0.2, 'end': 1.0}
    """
    first, last = ({int(x[5]): x for x in launch} for launch in (noted[0], noted[-1]))
    rates = [
        (float(last[sm][0]) - float(x[0])) / (float(last[sm][4]) - float(x[4])) for sm, x in first.items() if sm in last
    ]
    clock = statistics.median(rates) * 1e3  # cycles per microsecond
    blocks = [x for launch in noted for x in launch]
    return {
        field: round(statistics.median([float(x[i] - x[0]) for x in blocks]) / clock, 3)
        for i, field in enumerate(FIELDS)
        if field in ("load", "wgmma", "end")
    }


def _noted(module: Any, launch: Callable[[], object]) -> NDArray[Any]:
    """Return the records of the blocks of a launch, (blocks, FIELDS)."""
    import torch

    gpu = driver.driver()
    address = gpu.get_variable(module.driver_module(0), _GLOBAL)
    values = np.full((_MOST, len(FIELDS)), _NEVER, np.uint64)
    values[:, FIELDS.index("end")] = 0
    gpu.to_device(address, values.ctypes.data, values.nbytes)
    launch()
    torch.cuda.synchronize()
    gpu.to_host(values.ctypes.data, address, values.nbytes)
    return values[values[:, 0] != _NEVER]
