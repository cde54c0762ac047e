"""Which kernel for which problem, and what is copied or left to torch where none reads the matrices as they lie.

>>> choose(Problem(8192, 8192, 8192), gpu="NVIDIA H200").name         # measured
'f16-f16-kk-128x224-c2dw'
>>> [m * n >= 128 * 192 for m, n, _ in [choose(Problem(size, size, size)).config.tile for size in (1000, 8000)]]
[False, True]
"""

# torch is not there where the types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from cute_dialect.kernels.gemm.config import BITS
from cute_dialect.kernels.gemm.elements import outputs_of
from cute_dialect.kernels.gemm.epilogue import PLAIN, Epilogue, unknown_activation
from cute_dialect.op.choice import Choice, Problem, tuned
from cute_dialect.op.compiled import Runner, any_rows, runner
from cute_dialect.op.dtypes import element_of, output_of
from cute_dialect.op.errors import DtypeError, EpilogueError
from cute_dialect.op.fused import Matrix, bias_mode, folds
from cute_dialect.op.known import Extras
from cute_dialect.op.model import best, costs_of, tell_clusters

if TYPE_CHECKING:  # pragma: no cover
    import torch

    from cute_dialect.runtime.launch import Kernel

__all__ = ["Way", "choose", "epilogue_of", "gpu_of", "way_of", "with_epilogue"]


def choose(problem: Problem, sms: int = 132, gpu: str = "") -> Choice:
    """Return the kernel for a problem on a chip of ``sms`` multiprocessors.

    ``gpu``: the name of the GPU, whose tables (:mod:`cute_dialect.op.choice`) are asked first: the user's, then the
    one of this package; then, and without a name, what is predicted to be the fastest of the menu
    (:mod:`cute_dialect.op.model`), by the costs of that GPU.
    """
    found = tuned(gpu).get(problem.key) if gpu else None
    return found or best(problem, costs_of(gpu, sms))


def epilogue_of(
    extras: Extras, m: int, n: int, bias: tuple[int, ...] | None, bias_type: str
) -> Epilogue | None:  # fmt: skip
    """Return what a kernel does with its sums, (m, n) of a matrix; None for nothing.

    ``bias``: the shape of one, and torch's name of its type.  Raises ValueError.
    """
    if extras.plain:
        return None
    if extras.activation and extras.activation not in PLAIN:
        raise EpilogueError(unknown_activation(extras.activation))
    none = extras.c is None or extras.beta == 0.0
    return Epilogue(
        alpha=1.0 if extras.alpha == 1.0 else "arg",
        beta=0.0 if none else 1.0 if extras.beta == 1.0 else "arg",
        bias="" if bias is None else bias_mode(bias, m, n),
        bias_type="f32" if bias is None else output_of(bias_type),
        activation=extras.activation,
        hook=extras.hook,
    )


class Way(NamedTuple):
    """How a product is computed.

    ``problem``: what the kernel is given; ``choice``: a kernel of the menu, or None: the one for any rows;
    ``copied``: of ``a``, ``b`` and ``out`` those that the kernel cannot read or write where they are; ``folded``: the
    batch is one product of matrices; ``by_torch``: what becomes of the sums is torch's work.
    """

    problem: Problem
    choice: Choice | None
    copied: tuple[str, ...] = ()
    folded: bool = False
    by_torch: bool = False

    def kernel(self) -> Runner | Kernel:
        """Return the compiled kernel."""
        if self.choice is not None:
            return runner(self.choice)
        p = self.problem
        return any_rows(p.element, p.major_a, p.major_b, p.matrices > 1)


@lru_cache(maxsize=4096)
def way_of(
    a: Matrix, b: Matrix, out: Matrix, dtype: str, result: str, epilogue: Epilogue | None = None,
    gpu: str = "", sms: int = 132,
) -> Way:  # fmt: skip
    """Return how a product is computed: ``a`` (M, K), ``b`` (K, N), ``out`` (M, N), or batches of them.

    ``dtype``: of the factors, ``result``: of ``out``, as torch names them (:func:`cute_dialect.op.dtypes.both`);
    ``epilogue``: what becomes of the sums; ``gpu``, ``sms``: as for :func:`choose`.  Raises ValueError for types and
    strides that there is no kernel for.
    """
    element, output = element_of(dtype), output_of(result)
    if output not in outputs_of(element):
        raise DtypeError(f"expected a result of {', '.join(outputs_of(element))} for {element}, got {output}")
    m, n, k, matrices = *out.shape, a.shape[1], out.matrices
    by_row = epilogue is not None and epilogue.by_row
    folded = folds(a, b, out) and (matrices == 1 or not by_row)
    if folded:
        m, matrices = m * matrices, 1
    majors = ("k" if a.contiguous == 1 else "m", "n" if b.contiguous == 1 else "k")
    copied: list[str] = []
    if BITS[element] == 16:
        readable = all(x.suits_tma() for x in (a, b, out))
    else:  # only what is contiguous along K can be multiplied; of this all can be copied
        readable, majors = True, ("k", "k")
        wanted = (("a", a, 1), ("b", b, 0), ("out", out, 1))
        copied = [name for name, x, mode in wanted if not (x.along(mode) and x.suits_tma())]
    problem = Problem(m, n, k, element, output, *majors, matrices)
    by_torch = epilogue is not None and (not readable or (n % 2 != 0 and epilogue.graph is None))
    if not readable:
        if output != element and not by_torch:
            raise ValueError(f"expected a result of {element} for rows of no whole 16 bytes, got {output}")
        return Way(problem, None, (), folded, by_torch)
    choice = choose(problem, sms, gpu)
    if epilogue is not None and not by_torch:
        choice = with_epilogue(choice, epilogue)
    return Way(problem, choice, tuple(copied), folded, by_torch)


def with_epilogue(choice: Choice, epilogue: Epilogue) -> Choice:
    """Return the same kernel with an epilogue; a swapped problem has the swapped one."""
    epilogue = epilogue.transposed() if choice.swapped else epilogue
    skinny = None if choice.skinny is None else choice.skinny._replace(epilogue=epilogue)
    return choice._replace(config=choice.config._replace(epilogue=epilogue), skinny=skinny)


@cache
def gpu_of(device: torch.device) -> tuple[str, int]:
    """Return the name of a GPU and its number of multiprocessors; :func:`costs_of` knows its clusters from then on."""
    import torch

    from cute_dialect.runtime.occupancy import clusters_at_once

    properties = torch.cuda.get_device_properties(device)
    found = properties.name, properties.multi_processor_count
    if properties.major >= 9:
        tell_clusters(*found, *(clusters_at_once(device.index, size) for size in (4, 8)))
    return found
