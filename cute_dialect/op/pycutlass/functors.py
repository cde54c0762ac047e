"""Epilogue functors: linear combinations, clamped or with an activation.

>>> functor = LinearCombinationGeneric("relu", "f16", 8, "f32", "f32")
>>> functor.epilogue_type(2.0, 0.0)
OutputOp(alpha=2.0, beta=0.0, arguments=())
>>> functor.epilogue(2.0, 0.0).name
'alpha-relu'
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect.kernels.epilogue.activations import is_activation, spelled, unknown_activation
from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.op.arrays.dtypes import checked_element
from cute_dialect.op.errors import EpilogueError

if TYPE_CHECKING:  # pragma: no cover
    from typing import Self

    from cute_dialect.kernels.epilogue.combination import Epilogue, Hook
    from cute_dialect.kernels.epilogue.graph import Graph


class OutputOp(NamedTuple):
    """The numbers of a call: ``alpha``, ``beta``, and the parameters of the activation."""

    alpha: float = 1.0
    beta: float = 0.0
    arguments: tuple[float, ...] = ()


class VisitorOutputOp:
    """The arguments and results of a traced epilogue by name; ``problem_size`` is (M, N) if it is given."""

    def __init__(self, arguments: Mapping[str, Any]):
        given = dict(arguments)
        size = given.pop("problem_size", None)
        self.arguments, self.problem_size = given, None if size is None else tuple(size)[:2]
        self.wait: Callable[[], None] | None = None

    def sync(self) -> None:
        """Wait for the launch; results in NumPy arrays are valid afterwards."""
        if self.wait is not None:
            self.wait()


_LARGEST = {"f16": 65504.0, "bf16": 3.3895313892515355e38}
"""Float types whose conversions overflow to infinity, and their largest values."""


class EpilogueFunctor:
    """``D = activation(alpha * A B + beta * C)``, computed in f32.

    With ``clamp``, values that exceed the range of D become its largest value instead of infinity.
    """

    def __init__(
        self, element_output: object, alignment: int = 0, element_accumulator: object = "f32",
        element_compute: object = "f32", *, activation: object = "", clamp: bool = False,
    ):  # fmt: skip
        self.element_output = checked_element(element_output, "epilogue_functor")
        self.alignment = alignment
        self.element_accumulator = checked_element(element_accumulator, "epilogue_functor")
        self.element_compute = checked_element(element_compute, "epilogue_functor")
        self.activation = str(spelled(activation))
        self.clamp = clamp

    def __repr__(self) -> str:
        more = f", activation={self.activation!r}" * bool(self.activation)
        return f"{type(self).__name__}({self.element_output!r}, {self.alignment}{more})"

    def with_numbers(self, numbers: tuple[float, ...]) -> Self:
        """Return a copy whose activation has other parameters.  Raises EpilogueError."""
        if not self.activation:
            raise EpilogueError(f"the numbers {numbers} after alpha and beta need an activation; there is none")
        found = copy(self)
        found.activation = _checked((self.activation.partition("(")[0], *[number("activation", x) for x in numbers]))
        return found

    def epilogue_type(self, alpha: float = 1.0, beta: float = 0.0, *arguments: float) -> OutputOp:
        """Return the numbers of a call, the parameters of the activation last.  Raises EpilogueError."""
        if arguments:
            self.with_numbers(arguments)
        return OutputOp(number("alpha", alpha), number("beta", beta), tuple(arguments))

    def epilogue(
        self, alpha: float, beta: float, bias: str = "", bias_type: str = "f32", hook: Hook | None = None
    ) -> Epilogue:
        """Return the kernel epilogue for these numbers: alpha of 1 and beta of 0 are constants, others are launch
        arguments.

        Raises EpilogueError.
        """
        if self.clamp and self.element_output in _LARGEST:
            hook = _clamp_to(_LARGEST[self.element_output]) if hook is None else _refuse()
        made = Epilogue(
            1.0 if alpha == 1.0 else "arg", 0.0 if beta == 0.0 else "arg", bias, bias_type, self.activation, hook
        )
        try:
            made.check()
        except ValueError as e:
            raise EpilogueError(str(e)) from None
        return made

    def visited(self, graph: Graph) -> Epilogue:
        """Return a traced epilogue's graph as a kernel epilogue.  Raises EpilogueError if the functor does more."""
        if self.activation or self.clamp:
            also = f"activation {self.activation}" if self.activation else type(self).__name__
            raise EpilogueError(
                f"Gemm: {also} cannot be combined with a traced epilogue; compute it in the epilogue function"
            )
        return Epilogue(graph=graph)


def _checked(activation: object) -> str:
    """Return the text of an activation.  Raises EpilogueError."""
    text = spelled(activation)
    if not is_activation(text):
        raise EpilogueError(unknown_activation(text))
    return text


def number(name: str, value: object) -> float:
    """Return a number, or an array of one element, as a float.  Raises EpilogueError."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        item: Any = getattr(value, "item", None)
        try:
            return float(value if item is None else item())  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise EpilogueError(f"{name} must be a number, got {value!r}") from None
    return float(value)


def _refuse() -> Hook:
    raise EpilogueError(
        "epilogue: LinearCombinationClamp cannot be combined with a visitor; clamp in the visitor instead"
    )


@cache
def _clamp_to(most: float) -> Hook:
    """Return a hook that clamps values to [-most, most]; cached, so that kernels are shared."""

    def clamped(x: Any, row: Any, column: Any) -> Any:
        import cute_dialect.lang as cute

        return cute.max(cute.min(x, most), -most)

    clamped.__name__ = f"clamp{most:g}".replace("+", "").replace(".", "_")
    return clamped


class LinearCombination(EpilogueFunctor):
    """``D = alpha * A B + beta * C``."""


class LinearCombinationClamp(EpilogueFunctor):
    """``D = alpha * A B + beta * C``, clamped to the range of D."""

    def __init__(
        self, element_output: object, alignment: int = 0, element_accumulator: object = "f32",
        element_compute: object = "f32",
    ):  # fmt: skip
        super().__init__(element_output, alignment, element_accumulator, element_compute, clamp=True)


class FastLinearCombinationClamp(EpilogueFunctor):
    """``D = alpha * A B + beta * C`` of i32 accumulators, computed in f32 and clamped to the range of D."""

    def __init__(self, element_output: object, alignment: int = 0):
        super().__init__(element_output, alignment, "i32", "f32", clamp=True)


class ActivationFunctor(NamedTuple):
    """An activation with its parameters.  It is computed in f32, whatever ``element`` is."""

    name: str
    element: str = "f32"
    numbers: tuple[float, ...] = ()


_NUMBERS = {"leaky_relu": (0.2,)}
"""Default parameters of activations in descriptions, which are PyCUTLASS's and differ from torch's."""


def described_activation(name: str, element_compute: object = "f32", *numbers: float) -> ActivationFunctor:
    """Return an activation for :class:`LinearCombinationGeneric`; ``numbers`` are its parameters."""
    return ActivationFunctor(name, checked_element(element_compute, name), numbers or _NUMBERS.get(name, ()))


class LinearCombinationGeneric(EpilogueFunctor):
    """``D = activation(alpha * A B + beta * C)``.

    ``activation`` is a name, or ``op.relu("f32")`` and the like.  The slope of ``leaky_relu`` is 0.2, or the number
    after alpha and beta in ``epilogue_type``.
    """

    def __init__(
        self, activation: object, element_output: object, alignment: int = 0, element_accumulator: object = "f32",
        element_compute: object = "f32",
    ):  # fmt: skip
        usual = _NUMBERS.get(activation, ()) if isinstance(activation, str) else ()
        name = _checked((activation, *usual) if usual else activation)
        super().__init__(element_output, alignment, element_accumulator, element_compute, activation=name)
