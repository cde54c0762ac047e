# ruff: noqa: I001 (sorting would make a statement of each name)
"""The public names of the interpreter: each from the module that defines it."""

from cute_dialect.interp.memory.arguments import (
    Pointer as Pointer,
)
from cute_dialect.interp.errors import (
    InterpError as InterpError,
)
from cute_dialect.interp.exec.launch import (
    run_function as run_function,
    run_kernel as run_kernel,
)
from cute_dialect.interp.exec.launch import (
    RunOptions as RunOptions,
)
from cute_dialect.interp.reports.run_report import (
    Progress as Progress,
    RunReport as RunReport,
)
from cute_dialect.interp.memory.tensor_map import (
    TensorMap as TensorMap,
)
