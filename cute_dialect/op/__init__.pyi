# ruff: noqa: I001 (sorting would make a statement of each name)
"""The public names of the operations: each from the module that defines it."""

from cute_dialect.op import epilogue as epilogue
from cute_dialect.op.background import (
    Prefetch as Prefetch,
    prefetch as prefetch,
)
from cute_dialect.op.choice import (
    Choice as Choice,
    Problem as Problem,
)
from cute_dialect.op.errors import (
    AlignmentError as AlignmentError,
    DeviceError as DeviceError,
    DtypeError as DtypeError,
    EpilogueError as EpilogueError,
    LayoutError as LayoutError,
    OpError as OpError,
    ShapeError as ShapeError,
    UnsupportedError as UnsupportedError,
)
from cute_dialect.op.functions import (
    addmm as addmm,
    baddbmm as baddbmm,
    int_mm as int_mm,
    linear as linear,
    matmul as matmul,
)
from cute_dialect.op.gemm import (
    bmm as bmm,
    mm as mm,
)
from cute_dialect.op.report import (
    Explanation as Explanation,
    explain as explain,
)
from cute_dialect.op.ways import (
    choose as choose,
)
