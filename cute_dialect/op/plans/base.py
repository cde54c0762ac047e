"""Base classes of plans: settings, cached calls, and the kernels that a plan reports and saves.

:class:`Recorded` is the base of all plans, :class:`Tiled` of plans with tiles, :class:`Settings` of those of GEMMs and
convolutions.

A plan loaded from a folder (:func:`~cute_dialect.op.execute.saved.load`) has the kernels of that folder.  A call first
chooses a kernel as usual, and uses it if it is in the folder.  Otherwise it uses a choice that was recorded before the
plan was saved.
"""

# torch is not installed where the types are checked.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypedDict, TypeVar, cast

from cute_dialect.kernels.epilogue.activations import PLAIN
from cute_dialect.op.arrays.dtypes import checked_element
from cute_dialect.op.epilogue.tracing import Traced, current
from cute_dialect.op.errors import AlignmentError, DtypeError, EpilogueError, LayoutError, UnsupportedError
from cute_dialect.op.execute.arguments import wait_for
from cute_dialect.op.execute.call_cache import KnownCalls, key_and_arrays
from cute_dialect.op.execute.recording import needs_gradients
from cute_dialect.op.execute.saved import Fields, SavedKernels, Source, ir_of, module_of, write
from cute_dialect.op.problems.operands import Kinds
from cute_dialect.op.pycutlass.arguments import is_of_sums
from cute_dialect.op.pycutlass.functors import EpilogueFunctor, number
from cute_dialect.op.select.backends import KERNEL_CCS, WGMMA, selected_cc
from cute_dialect.op.select.configurations import FAST, KernelRequest
from cute_dialect.op.select.descriptions import (
    IdentitySwizzle8,
    MathOperation,
    OpcodeClass,
    Swizzle,
    TileDescription,
    known,
)
from cute_dialect.op.select.gemm_dispatch import here
from cute_dialect.runtime.arrays import current_stream_of_torch

if TYPE_CHECKING:  # pragma: no cover
    from typing import Self

    from cute_dialect.kernels.epilogue.combination import Hook
    from cute_dialect.op.execute.arguments import Arguments


class Call(Protocol):
    """A checked call."""

    @property
    def problem(self) -> str:
        """Text that distinguishes the call from calls of other sizes."""
        ...

    def sources(self) -> Sequence[Source]:
        """Return the kernels that the call launches."""
        ...

    def taken(self) -> Fields:
        """Return the choices made for the call as data."""
        ...


_C = TypeVar("_C", bound=Call)
_R = TypeVar("_R")


class Replayed:
    """Mix-in of the arguments of a replayed call, which are computed when one is read."""

    _make: Callable[[], object]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        for key, value in vars(self._make()).items():
            self.__dict__.setdefault(key, value)
        return object.__getattribute__(self, name)


@cache
def _replayed_class(kind: type[Any]) -> type[Any]:
    return type(f"Replayed{kind.__name__}", (Replayed, kind), {})


def replayed(kind: type[_R], make: Callable[[], _R], D: Any) -> _R:
    """Return the arguments of a replayed call.

    Args:
        kind: their class.
        make: checks the same arrays again and returns their arguments.
        D: the result, a torch tensor.
    """
    found = object.__new__(_replayed_class(kind))
    number = D.device.index or 0
    wait = wait_for(number, current_stream_of_torch()(number))
    found.__dict__.update(_make=make, D=D, results={"D": D}, _transfer=None, launched=[], _wait=wait)
    return cast("_R", found)


class Recorded:
    """A plan that records the kernels of its calls.

    ``call`` is the name of the plan in messages. ``saved`` holds the kernels loaded from its folder.
    """

    call: ClassVar[str]

    def __init__(self) -> None:
        self.saved: SavedKernels | None = None
        self._sources: dict[str, Source] = {}
        self._choices: dict[str, Fields] = {}
        self._chosen: dict[str, Self] = {}
        self._known = KnownCalls()

    # ------------------------------------------------------------------------------------------- methods of subclasses

    @classmethod
    def of_settings(cls, settings: Fields) -> Self:
        """Return the plan of :meth:`settings`."""
        raise NotImplementedError

    def settings(self) -> Fields:
        """Return the settings of the plan as data."""
        raise NotImplementedError

    def _take(self, choice: Fields) -> None:
        """Use the choices of one call for all calls."""
        raise NotImplementedError

    def _shown(self) -> Source:
        """Return the kernel that texts refer to."""
        raise NotImplementedError

    # ------------------------------------------------------------------------------------------------------- recording

    def _record(self, call: Call) -> None:
        """Record the kernels of a launched call, to save them."""
        for source in call.sources():
            self._sources.setdefault(source.name, source)
        if call.problem not in self._choices:
            self._choices[call.problem] = call.taken()

    def _forget(self) -> None:
        """Discard records made with other settings."""
        self._sources.clear()
        self._choices.clear()
        self._chosen.clear()
        self._known.clear()

    def save(self, folder: str | os.PathLike[str]) -> str:
        """Write the plan and the kernels of its calls to a folder, and return its path.

        ``op.load(folder)`` returns a plan that runs them with the driver and NumPy or torch only (or on the
        interpreter, if it is installed).  Raises UnsupportedError if nothing was run.
        """
        if not self._sources:
            raise UnsupportedError("save: the plan was never run, so it has no kernels to save; run it first")
        return write(folder, self.call, self.settings(), list(self._sources.values()), self._choices)

    # ------------------------------------------------------------------------------------------------------ cached runs

    def _refuse_gradients(self, function: str, arrays: Iterable[Any]) -> None:
        """Raise UnsupportedError if torch needs gradients of an array, or of an array in a list.

        Args:
            function: function of ``op`` that computes the same with gradients, "" if there is none.
        """
        if needs_gradients(*[x for y in arrays for x in (y if isinstance(y, list | tuple) else (y,))]):
            instead = f"use op.{function}, or call" if function else "call"
            raise UnsupportedError(
                f"{self.call}.run: results of a plan have no gradients; {instead} under torch.no_grad()"
            )

    def _run(
        self, how: tuple[object, ...] | None, given: Iterable[Any], launch: Callable[[], _R],
        replay: Callable[[Any], _R], result_of: Callable[[_R], Any] = attrgetter("D"),
    ) -> _R:  # fmt: skip
        """Launch a call and return its arguments; a call of torch tensors that was recorded is replayed.

        Args:
            how: settings that can change; None for a call that is not cached.
            given: the call's arrays and numbers, None for those that are not passed.
            launch: checks the call, launches it and returns its arguments.
            replay: returns the arguments of a replayed call, for its results.
            result_of: returns the arrays of the results.
        """
        known = self._known
        if how is None or "torch" not in sys.modules or known.is_traced():
            return launch()
        key, tensors = key_and_arrays(how, given)
        found = known.again(key, *tensors) if len(known) else None
        if found is not None:
            return replay(found)
        done: list[_R] = []

        def result() -> Any:
            done.append(launch())
            return result_of(done[0])

        known.recorded(key, tensors, result)
        return done[0]

    # --------------------------------------------------------------------------------------------------------- serving

    def _served(self, name: str, make: Callable[[Self], _C]) -> _C:
        """Return the call ``make(plan)`` with saved kernels.  Raises UnsupportedError if it needs others."""
        saved = self.saved
        if saved is None:
            return make(self)
        found = make(self)
        wanted = found.problem
        if wanted not in saved.choices and saved.has(found.sources()):
            return found
        for plan in self._others(saved, wanted):
            try:
                other = make(plan)
            except (AlignmentError, EpilogueError, LayoutError, UnsupportedError):
                continue  # This choice was for operands of other layouts.
            if saved.has(other.sources()):
                return other
        if saved.has(found.sources()):
            return found
        raise UnsupportedError(
            f"{name}: the call {wanted} needs {', '.join([x.name for x in found.sources()])}, which the folder does "
            f"not have (it has {', '.join(saved.names) or 'none'}); run the call before saving the plan"
        )

    def _others(self, saved: SavedKernels, wanted: str) -> Iterator[Self]:
        """Yield plans with recorded choices, that of the wanted problem first."""
        for problem in dict.fromkeys([*([wanted] if wanted in saved.choices else ()), *saved.choices]):
            choice = saved.choices[problem]
            key = repr(choice)
            if key not in self._chosen:
                plan = copy(self)
                plan._known = KnownCalls()
                plan._take(choice)
                self._chosen[key] = plan
            yield self._chosen[key]

    # ----------------------------------------------------------------------------------------------------------- texts

    def ir(self, stage: str = "cute") -> str:
        """Return the text of the last run's GEMM kernel after a stage: ``cute``, ``expanded``, ``arch``, ``base`` or
        ``llvm``.
        """
        return ir_of(self._shown(), stage)

    @property
    def ptx(self) -> str:
        """The PTX of that kernel."""
        return module_of(self._shown(), self.saved).ptx

    @property
    def report(self) -> str:
        """The report of ptxas for that kernel: registers and spills."""
        return module_of(self._shown(), self.saved).report


_SUMS = {"i8": "i32", "ui8": "i32", "f64": "f64"}


class Machine(TypedDict):
    """The GPU for which kernels are chosen, and the class of their instructions."""

    gpu: str
    sms: int
    opclass: str
    chip: int


class Tiled(Recorded):
    """A plan of kernels with tiles: one fixed tile, or one chosen for each call."""

    def __init__(self) -> None:
        super().__init__()
        self._tile: TileDescription | None = None

    def _reset(self) -> None:
        """Discard the operations built with other settings."""
        raise NotImplementedError

    def tile_descriptions(self) -> Sequence[TileDescription]:
        """Return all tiles with a kernel, the default first.  Nothing is compiled."""
        raise NotImplementedError

    def _check_tile(self, td: TileDescription) -> None:
        """Raise OpError for a tile without a kernel."""
        raise NotImplementedError

    @property
    def tile_description(self) -> TileDescription | None:
        """The tile, or None to choose one for each problem.  A dict changes fields of the default tile."""
        return self._tile

    @tile_description.setter
    def tile_description(self, value: TileDescription | Mapping[str, object] | None) -> None:
        if isinstance(value, Mapping):
            value = (self._tile or self.tile_descriptions()[0]).replace(value)
        if value is not None:
            self._check_tile(value)
        self._tile = value
        self._reset()

    td = tile_description


class Settings(Tiled):
    """The properties of a plan for operands of some ``kinds``.  Setting one discards the operations built before.

    Raises OpError.
    """

    call: ClassVar[str] = "Gemm"
    """Name of the plan in messages."""
    kernel_ccs: ClassVar[Sequence[int]] = KERNEL_CCS
    """The compute capabilities that have kernels for the plan."""

    def __init__(
        self, arrays: Sequence[object], kinds: Kinds, element_accumulator: object, element_compute: object,
        alpha: float, beta: float, chip: int | None, kernel_cc: int | None,
    ):  # fmt: skip
        super().__init__()
        self.A, self.B, self.C, self.D = arrays
        self.kinds = kinds
        if checked_element(element_compute, f"{self.call}: element_compute") not in ("f32", "f16", "bf16", "f64"):
            raise DtypeError(f"{self.call}: element_compute={element_compute!r} is not supported; use a float type")
        self.chip = selected_cc(self.call, chip, kernel_cc, self.kernel_ccs)
        self._alpha, self._beta = number("alpha", alpha), number("beta", beta)
        self._activation, self._visitor = "", cast("Traced | Hook | None", None)
        self._clamp = False
        self._traced: Traced | None = None  # trace of the visitor; of a function, that of the last call
        self._visited: dict[str, object] | None = None
        self._swizzle: Swizzle | None = None
        self._math_operation = MathOperation.multiply_add
        self._opclass = OpcodeClass.Simt if kinds.a.element == "f32" else OpcodeClass.TensorOp
        self._accumulator = self._sums() if element_accumulator is None else checked_element(element_accumulator)
        self._operations: dict[object, Any] = {}
        self._scaled: dict[object, Any] = {}  # plans of calls with one factor per matrix
        self._last: Arguments | None = None
        self._check()

    def _sums(self) -> str:
        """Return the default type of the accumulator."""
        return _SUMS.get(self.kinds.a.element, "f32")

    def _check(self) -> None:
        """Raise OpError if there is no kernel for the plan."""
        asked, element = self.asked(), self.kinds.a.element
        sums = self._sums()
        if asked.accumulator != sums and (
            (asked.accumulator, element) != ("f16", "f16") or not WGMMA.is_allowed(self.chip)
        ):
            raise UnsupportedError(
                f"{self.call}: accumulation in {asked.accumulator} is not supported for {element}; use {sums} "
                "(wgmma accumulates in f16 for f16 operands only)"
            )
        k = self.kinds
        if k.c is not None and k.c != k.d:
            raise UnsupportedError(f"{self.call}: C is {k.c}; it must be {k.d}, like D")

    def asked(self, *, batch: bool = False) -> KernelRequest:
        """Return the requirements of its kernels."""
        a, b, _, d = self.kinds
        x, y = a.element, b.element
        if self._opclass is OpcodeClass.TensorOp and self._math_operation not in FAST:
            x, y = ("tf32" if e == "f32" else e for e in (x, y))
        return KernelRequest(
            x,
            y,
            self._accumulator,
            d.element,
            a.layout,
            b.layout,
            d.layout,
            batch,
            math=self._math_operation,
            chip=self.chip,
        )

    def where(self) -> Machine:
        """Return the GPU and the instruction class for which kernels are chosen."""
        gpu, sms = here()
        return {"gpu": gpu, "sms": sms, "opclass": str(self._opclass), "chip": self.chip}

    def _arrays(self, *given: object) -> tuple[object, object, object, object]:
        """Return the arrays A, B, C and D of a call, with the plan's arrays as defaults."""
        a, b, c, d = (own if x is None else x for own, x in zip((self.A, self.B, self.C, self.D), given))
        return a, b, c, d

    def _cached_run(
        self, how: tuple[object, ...] | None, factors: tuple[Any, Any], c: Any, given: tuple[Any, ...],
        launch: Callable[[], _R], replay: Callable[[Any], _R],
    ) -> _R:  # fmt: skip
        """Run a call with numbers for alpha and beta, as :meth:`_run` does.  C does not matter if beta is 0.

        Args:
            factors: alpha and beta.
            c: C or None.
            given: the other arrays and numbers.
        """
        alpha, beta = factors
        if how is None or not (isinstance(alpha, int | float) and isinstance(beta, int | float)):
            return launch()
        return self._run(how, (*given, alpha, beta, c if beta != 0.0 else None), launch, replay)

    def _factors(self, alpha: Any, beta: Any) -> tuple[Any, Any]:
        """Return alpha and beta of a call, with the plan's factors as defaults."""
        return self._alpha if alpha is None else alpha, self._beta if beta is None else beta

    def _reset(self) -> None:
        self._operations.clear()
        self._scaled.clear()
        self._forget()

    # ---------------------------------------------------------------------------------------------------------- as data

    def settings(self) -> Fields:
        """Return the settings of the plan as data.  A function in the kernel language is saved by name only."""
        of_operands = {f"element_{name}": "void" if t is None else t.element for name, t in zip("ABCD", self.kinds)}
        visitor = self._traced or self._visitor
        return {
            **of_operands, "element_accumulator": self._accumulator, "alpha": self._alpha, "beta": self._beta,
            "kernel_cc": self.chip, "opclass": str(self._opclass), "math_operation": str(self._math_operation),
            "activation": self._activation, "clamp": self._clamp,
            "swizzling_functor": None if self._swizzle is None else list(self._swizzle),
            "tile_description": None if self._tile is None else self._tile.to_json(),
            "epilogue": visitor.to_json() if isinstance(visitor, Traced) else None,
            "hook": "" if visitor is None or isinstance(visitor, Traced) else getattr(visitor, "__name__", "hook"),
        }  # fmt: skip

    def restored(self, settings: Fields) -> Self:
        """Set the properties from :meth:`settings`, other than elements and numbers, and return the plan."""
        self._opclass = OpcodeClass(settings["opclass"])
        self._math_operation = MathOperation(settings["math_operation"])
        self._activation, self._clamp = settings["activation"], settings["clamp"]
        swizzle, tile, epilogue = (settings[n] for n in ("swizzling_functor", "tile_description", "epilogue"))
        self._swizzle = None if swizzle is None else Swizzle(*swizzle)
        self._take({"tile": tile, "algorithm": settings.get("iterator_algorithm")})
        self._traced = None if epilogue is None else Traced.from_json(epilogue)
        self._visitor = _named(settings["hook"]) if settings["hook"] else self._traced
        return self

    def _take(self, choice: Fields) -> None:
        tile = choice["tile"]
        self._tile = None if tile is None else TileDescription.from_json(tile)
        self._operations = {}

    def _functor(self) -> EpilogueFunctor:
        """Return the epilogue functor, if no epilogue is traced."""
        return EpilogueFunctor(
            self.kinds.d.element, 0, self._accumulator, clamp=self._clamp, activation=self._activation
        )

    @property
    def alpha(self) -> float:
        """Default factor of the GEMM."""
        return self._alpha

    @alpha.setter
    def alpha(self, value: float) -> None:
        self._alpha = number("alpha", value)

    @property
    def beta(self) -> float:
        """Default factor of C; with 0, C is not read."""
        return self._beta

    @beta.setter
    def beta(self, value: float) -> None:
        self._beta = number("beta", value)

    @property
    def opclass(self) -> str:
        """``tensor_op`` or ``simt``; tensor cores multiply f32 as tf32."""
        return self._opclass

    @opclass.setter
    def opclass(self, value: str) -> None:
        before, found = self._opclass, OpcodeClass(known(OpcodeClass, value, "opclass"))
        elements = [self.kinds.a.element, self.kinds.b.element]
        if found is OpcodeClass.Simt and not {*elements} <= {"f32", "tf32", "f64"}:
            types = " and ".join(dict.fromkeys(elements))
            raise UnsupportedError(
                f"{self.call}: opclass simt supports f32 and f64 only, but A and B have {types}; use opclass tensor_op"
            )
        self._opclass = found
        if self._math_operation in FAST:
            self._math_operation = MathOperation.multiply_add
        try:
            self._check()
        except ValueError:
            self._opclass = before
            raise
        self._tile = None
        self._reset()

    @property
    def math_operation(self) -> str:
        """Arithmetic of the multiplication."""
        return self._math_operation

    @math_operation.setter
    def math_operation(self, value: str) -> None:
        found = MathOperation(known(MathOperation, value, "math_operation"))
        elements = {self.kinds.a.element, self.kinds.b.element}
        if found in FAST and elements != {"f32"}:
            raise UnsupportedError(f"{self.call}: {found} supports f32 only, got {self.kinds.a.element}")
        if found == MathOperation.multiply_add_saturate and not elements <= {"i8", "ui8"}:
            raise UnsupportedError(f"{self.call}: {found} supports 8-bit integers only, got {self.kinds.a.element}")
        if found in FAST:
            self._opclass = OpcodeClass.TensorOp
        self._math_operation, self._tile = found, None
        self._reset()

    @property
    def swizzling_functor(self) -> Swizzle:
        """Order in which blocks take tiles."""
        return self._swizzle or IdentitySwizzle8

    @swizzling_functor.setter
    def swizzling_functor(self, value: Swizzle) -> None:
        if not isinstance(value, Swizzle):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UnsupportedError(f"swizzling_functor={value!r} is not a swizzle; use one such as op.IdentitySwizzle4")
        self._swizzle = value
        self._reset()

    @property
    def activation(self) -> str:
        """Name of the activation, "" for none."""
        return self._activation

    @activation.setter
    def activation(self, value: object) -> None:
        functor = EpilogueFunctor(self.kinds.d.element, activation="" if value in (None, "identity") else value)
        functor.epilogue(1.0, 0.0)
        self._activation = functor.activation
        self._reset()

    def activations(self) -> list[str]:
        """Return the names of activations."""
        return list(PLAIN)

    @property
    def epilogue_visitor(self) -> Traced | Hook | None:
        """The epilogue, or None.

        It is the result of ``op.epilogue.trace``, or a function with a parameter ``accum``, which each call traces.
        Or it is a function of (value, row, column) in the kernel language, applied to each element of D in f32.
        """
        return self._visitor

    @epilogue_visitor.setter
    def epilogue_visitor(self, value: Traced | Hook | None) -> None:
        if not (value is None or isinstance(value, Traced) or callable(value)):
            raise EpilogueError(
                f"epilogue_visitor={value!r} is not a function; pass one of accum or of (value, row, column)"
            )
        self._visitor, self._traced = value, value if isinstance(value, Traced) else None
        self._visited: dict[str, object] | None = None
        self._reset()

    @property
    def traced(self) -> Traced | None:
        """The traced epilogue; of a function, that of the last call."""
        return self._traced

    def _known_visitor(self) -> Traced | Hook | None:
        """Return the epilogue of an operation.  Raises EpilogueError for a function that is not traced yet."""
        visitor = self._traced or self._visitor
        if visitor is not self._traced and is_of_sums(visitor):
            raise EpilogueError(
                f"{self.call}: the epilogue_visitor is not traced yet; run the plan first, or set "
                "op.epilogue.trace(function, examples)"
            )
        return visitor if visitor is self._traced else current(visitor)

    def sync(self) -> None:
        """Wait for the last run; results in NumPy arrays are valid afterwards."""
        if self._last is not None:
            self._last.sync()


def _named(name: str) -> Hook:
    """Return a placeholder for a kernel-language function of a saved plan; its name finds the kernels."""

    def hook(value: Any, row: Any, column: Any) -> Any:
        raise UnsupportedError(f"load: the function {name} was not saved; only the kernels of the folder contain it")

    hook.__name__ = name
    return hook
