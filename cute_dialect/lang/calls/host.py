"""Tracing of host functions, and of each kernel at its launch, into one module.

A kernel gets its own objects, built from its parameters: containers and instances among its arguments are taken apart.
Objects without dynamic values are shared with the host.  Two references to one object on the host are references to one
object in the kernel.

A host function without launches runs on the interpreter like one thread, on arrays in CPU memory: the traced body
becomes a kernel of one thread.  The numbers that it returns are written to arrays of one element.
"""

from __future__ import annotations

import copy
import dis
import re
import warnings
from collections.abc import Mapping, Sequence
from inspect import CO_GENERATOR, signature
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect.arch.targets import DEFAULT_TARGET
from cute_dialect.errors import CompileError, Place
from cute_dialect.lang.calls.arguments import STREAM, Spec, named, rebuild, symbol_places
from cute_dialect.lang.calls.compiled import CALL_OPTIONS, Outcome
from cute_dialect.lang.calls.function_traces import host_function, kernel_function
from cute_dialect.lang.calls.options import options_of
from cute_dialect.lang.calls.promises import Promised
from cute_dialect.lang.calls.specializations import head_of
from cute_dialect.lang.calls.traced import generic_names, reify
from cute_dialect.lang.control.errors import arguments_error, similar
from cute_dialect.lang.control.mutable_state import kept_in, set_attribute
from cute_dialect.lang.control.runtime import converted
from cute_dialect.lang.machine.printf import HostTexts, take_host_texts
from cute_dialect.lang.tracing.errors import KernelTypeError, SyntaxErrorInKernel
from cute_dialect.lang.tracing.source_location import place_at, place_of_location, user_places
from cute_dialect.lang.tracing.tracer import (
    LaunchFacts,
    Tracer,
    active,
    device_block,
    empty_module,
    finishes_errors,
    function_op,
    op_class,
    parse_type,
    require_chip,
    trace_boundary,
)
from cute_dialect.lang.values.annotations import TensorAnnotation, is_number_type, without_none
from cute_dialect.lang.values.dtypes import Int32, Numeric
from cute_dialect.lang.values.dynamic import Dynamic, Form, is_dynamic, made_of
from cute_dialect.lang.values.forms import ConstForm, form_of
from cute_dialect.lang.values.numeric import refuse_in_launcher
from cute_dialect.lang.values.tensors import TensorForm
from cute_dialect.runtime.abi import MERGED_SMEM, PREFERRED_CLUSTER
from cute_dialect.runtime.arrays import numpy_dtype

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Attribute, SSAValue

    from cute_dialect.lang.calls.options import Options
    from cute_dialect.lang.calls.specializations import Call
    from cute_dialect.lang.calls.traced import Traced
    from cute_dialect.runtime.launch import Kernel

# ------------------------------------------------------------------------------------------------- arguments of kernels


class ObjectForm(Form):
    """The form of an object and everything it holds: the tree of its dynamic leaves."""

    __slots__ = ("leaves", "types", "value")

    def __init__(self, value: object, leaves: dict[int, Form]):
        self.value = value
        self.leaves = leaves
        self.types: tuple[Attribute, ...] = tuple(t for form in leaves.values() for t in form.types)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectForm) and self.value is other.value

    def __hash__(self) -> int:
        return hash((ObjectForm, id(self.value)))

    def take(self, value: object) -> list[SSAValue]:
        found = _dynamic_leaves(value)
        return [leaf for at, form in self.leaves.items() for leaf in form.take(found[at])]

    def make(self, leaves: Sequence[SSAValue]) -> object:
        return _rebuilt(self.value, dict(zip(self.leaves, made_of(self.leaves.values(), leaves))))


def argument_form(value: object) -> Form:
    """Return the form of a kernel's argument."""
    if isinstance(value, Dynamic):
        return value.__cute_form__()
    leaves = {key: leaf.__cute_form__() for key, leaf in _dynamic_leaves(value).items()}
    # Constant coordinates are not parameters, but each function needs its own value for them.
    leaves = {key: form for key, form in leaves.items() if form.types or isinstance(form, TensorForm)}
    return ObjectForm(value, leaves) if leaves else ConstForm(value)


def _dynamic_leaves(value: object) -> dict[int, Dynamic]:
    """Return the dynamic values reachable from an object, by identity, in order of first reach."""
    found: dict[int, Dynamic] = {}
    seen: set[int] = set()

    def walk(x: Any) -> None:
        if isinstance(x, Dynamic):
            found.setdefault(id(x), x)
            return
        held = x if isinstance(x, tuple) else kept_in(x)
        if held is None or id(x) in seen:
            return
        seen.add(id(x))
        for part in held.values() if isinstance(held, dict) else held:
            walk(part)

    walk(value)
    return found


def _rebuilt(value: object, made: dict[int, Any]) -> Any:
    """Return a copy of ``value`` with its dynamic values replaced. Parts without dynamic values are shared."""
    done: dict[int, Any] = dict(made)

    def changes(x: Any, seen: set[int]) -> bool:
        if id(x) in made:
            return True
        held = x if isinstance(x, tuple) else kept_in(x)
        if held is None or id(x) in seen:
            return False
        seen.add(id(x))
        return any(changes(part, seen) for part in (held.values() if isinstance(held, dict) else held))

    def again(x: Any) -> Any:
        if id(x) in done:
            return done[id(x)]
        if isinstance(x, Dynamic) or not changes(x, set()):
            return x
        if isinstance(x, tuple):
            parts = [again(part) for part in x]
            result: Any = tuple(parts) if type(x) is tuple else type(x)(*parts)
            done[id(x)] = result
            return result
        held: Any = kept_in(x)
        result = done[id(x)] = copy.copy(x)
        if isinstance(held, set):
            result.clear()
            result.update(again(part) for part in held)
            return result
        for slot in list(held) if isinstance(held, dict) else range(len(held)):
            if isinstance(x, list | dict):
                result[slot] = again(held[slot])
            else:
                set_attribute(result, slot, again(held[slot]))
        return result

    return again(value)


# ------------------------------------------------------------------------------------------- functions without launches


class Outputs:
    """The return value of such a function, with placeholders for the numbers that it computes."""

    def __init__(self, tree: Any, numbers: Sequence[Any], *, empty: bool):
        self.tree = tree
        self.numbers = tuple(numbers)
        self.empty = empty

    def run(self, kernel: Kernel | None, leaves: Sequence[Any], options: dict[str, Any]) -> Any:
        """Run the function and return its value."""
        if self.empty or kernel is None:
            return self.tree
        import numpy as np

        found = [np.zeros(1, numpy_dtype(kind.mlir_type)) for kind in self.numbers]
        own = {k: v for k, v in options.items() if k != "stream"}
        kernel(*leaves, *found, device="cpu", **own)
        return _filled(self.tree, [kind.exactly(x[0].item()).value for kind, x in zip(self.numbers, found)])


class _At:
    """Placeholder of a computed number."""

    def __init__(self, index: int):
        self.index = index


def _filled(tree: Any, numbers: Sequence[Any]) -> Any:
    if isinstance(tree, _At):
        return numbers[tree.index]
    if isinstance(tree, tuple):
        parts = [_filled(x, numbers) for x in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)
    if isinstance(tree, list):
        return [_filled(x, numbers) for x in tree]
    if isinstance(tree, dict):
        return {k: _filled(x, numbers) for k, x in tree.items()}
    return tree


def as_kernel(tracer: Tracer, result: Any) -> Outputs:
    """Write the numbers of a result to additional parameters, at the end of the traced function."""
    from xdsl.traits import is_side_effect_free

    numbers: list[Any] = []

    def walk(value: Any) -> Any:
        if isinstance(value, Numeric) and not value.is_static:
            _write(tracer, value)
            numbers.append(type(value))
            return _At(len(numbers) - 1)
        if isinstance(value, tuple):
            parts = [walk(x) for x in value]
            return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
        if isinstance(value, list):
            return [walk(x) for x in value]
        if isinstance(value, dict):
            return {k: walk(x) for k, x in value.items()}
        if form_of(value).types:
            raise CompileError(
                "F117", f"a host function can return numbers and compile-time values, not {type(value).__name__}"
            )
        return value

    tree = walk(result)
    # Without results, pure computations need not run: their arrays may be on a GPU or have no memory.
    empty = not numbers and all(is_side_effect_free(op) for op in tracer.entry.ops)
    return Outputs(tree, numbers, empty=empty)


def _write(tracer: Tracer, value: Any) -> None:
    kind = type(value)
    place = tracer.entry.insert_arg(parse_type(f'!cute.memref<{kind.mlir_type}, gmem, "1:1">'), len(tracer.entry.args))
    place.name_hint = f"result_{len(tracer.entry.args)}"
    zero = tracer.static('!cute.coord<"0">')
    tracer.op("cute.memref.store", [place, zero, value.ssa])


def launch_it(module: ModuleOp, name: str, outputs: Outputs) -> None:
    """Turn the traced host function into a kernel of one thread, and add a host function that launches it."""
    from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, SymbolRefAttr, UnitAttr, i32
    from xdsl.ir import Block, Region

    function = next(op for op in module.body.block.ops if op.name == "func.func")
    body = function.regions[0]
    types = [a.type for a in body.blocks[0].args]
    end = body.blocks[0].last_op
    assert end is not None
    end.detach()
    end.erase()
    function.detach()
    region = Region()
    body.move_blocks(region)
    attributes = {"gpu.kernel": UnitAttr(), "known_block_size": DenseArrayBase.from_list(i32, [1, 1, 1])}
    kernel = function_op("gpu.func", name, types, attributes, region)
    region.blocks[0].add_op(op_class("gpu.return").create())
    device_block(module).add_op(kernel)
    block = Block(arg_types=types)
    for mine, old in zip(block.args, region.blocks[0].args):
        mine.name_hint = old.name_hint
    one = op_class("arith.constant").create(result_types=[i32], properties={"value": IntegerAttr(1, i32)})
    launch = op_class("gpu.launch_func").create(
        operands=[*[one.results[0]] * 6, *block.args],
        properties={
            "kernel": SymbolRefAttr("kernels", [name]),
            "operandSegmentSizes": DenseArrayBase.from_list(i32, [0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, len(types), 0]),
        },
    )
    block.add_ops([one, launch, op_class("func.return").create()])
    module.body.block.add_op(function_op("func.func", name, types, {}, Region(block)))


# ------------------------------------------------------------------------------------------ host functions and launches


YIELD = dis.opmap["YIELD_VALUE"]


class Program(NamedTuple):
    """The result of a trace: the module, and the part that is kept without it."""

    module: ModuleOp
    outcome: Outcome


def trace_host(traced: Traced, call: Call, config: object, options: Options) -> Program:
    """Trace a host function for the specs of a call."""
    module = empty_module()
    name = symbol(traced.name)
    bound = call.bound()
    parameters = [(symbol(n), parse_type(text)) for n, text in named(call.specs)]
    with host_function(module, name, parameters, chip=options.chip) as (tracer, values):
        pending: list[Launch] = []
        tracer.state["pending"] = pending
        _set_asserts(tracer, options)
        bound.arguments.update(rebuild(call.specs, values))
        result = trace_boundary(_body(call.function), *bound.args, **bound.kwargs)
        for launch in pending:
            raise CompileError(
                "F110",
                f"{launch.describe()} is never launched",
                place=launch.place,
                hint="add .launch(grid=…, block=…)",
            )
        texts = HostTexts()
        if not tracer.state.get("launches"):
            outputs = as_kernel(tracer, result)
        else:
            outputs = None
            refuse_in_launcher(tracer)
            _check_host(tracer, result)
            texts = take_host_texts(tracer)
    if outputs is not None:
        launch_it(module, name, outputs)
    _say_symbols(module, name, call.specs)
    return Program(module, Outcome(name, result, outputs, texts))


def _say_symbols(module: ModuleOp, name: str, specs: Mapping[str, Spec]) -> None:
    """Record in the module which extents and strides share a symbol; the launcher checks that they are equal."""
    from xdsl.dialects.builtin import ArrayAttr, StringAttr

    said = [f"{symbol}: {' = '.join(places)}" for symbol, places in symbol_places(specs)]
    for op in module.ops if said else ():
        if op.properties.get("sym_name") == StringAttr(name):
            op.attributes["cute.symbols"] = ArrayAttr([StringAttr(text) for text in said])


def _set_asserts(tracer: Tracer, options: Options) -> None:
    """Select the checks that are traced: those of the compiler (promises, coordinates, loop steps) and of this package,
    and the user's assert statements.
    """
    tracer.state["asserts"] = options.assertions or options.interpreted
    tracer.state["users_asserts"] = tracer.state["asserts"] or options.asserts


def inlined(traced: Traced, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Inline a call of a host function into the current trace."""
    function, signature = head_of(traced)
    if not getattr(function, "__annotations__", None) and not generic_names(traced):
        return converted(function)(*args, **kwargs)
    try:
        call = signature.bind(*args, **kwargs)
    except TypeError as e:
        text, hint = arguments_error(e, signature, kwargs)
        raise KernelTypeError("F116", f"'{traced.name}': {text}", hint=hint) from None
    reified = reify(traced, function, call.arguments)
    for parameter, note in reified.annotations.items():
        if parameter in call.arguments:
            call.arguments[parameter] = _annotated(call.arguments[parameter], note, parameter)
    return converted(reified.function)(*call.args, **call.kwargs)


def _check_host(tracer: Tracer, result: object) -> None:
    """Raise if a function with launches has run-time loops, element accesses or run-time results."""
    for op in tracer.function.walk():
        if op.name in ("scf.for", "scf.while"):
            raise CompileError(
                "F113", "a host function that launches kernels cannot contain a run-time loop",
                place=place_of_location(op.location),
                hint="move the loop into the kernel, or make its bounds cute.Constexpr",
            )  # fmt: skip
        if op.name in ("cute.memref.load", "cute.memref.store", "cute.memref.load_vec", "cute.memref.store_vec"):
            raise CompileError(
                "F113", "a host function that launches kernels cannot read or write array elements",
                place=place_of_location(op.location),
                hint="access them in the kernel, or pass the number as an argument",
            )  # fmt: skip
    if form_of(result).types:
        raise CompileError(
            "F117", "a host function that launches kernels cannot return a run-time value",
            hint="write the value to an array in the kernel",
        )  # fmt: skip


def trace_launch(traced: Traced, call: Call, config: Any, options: Options) -> Program:
    """Trace a host function around a launch outside any. Its grid is a parameter, the other sizes are static."""
    module = empty_module()
    name = symbol(f"launch_{traced.name}")
    bound = call.bound()
    parameters = [(symbol(n), parse_type(text)) for n, text in named(call.specs)]
    with host_function(module, name, parameters, chip=options.chip) as (tracer, values):
        tracer.state["pending"] = []
        _set_asserts(tracer, options)
        arguments = rebuild(call.specs, values)
        grid = tuple([arguments.pop(f"grid.{axis}") for axis in "xyz"])
        bound.arguments.update(arguments)
        launch = Launch(traced, bound.args, bound.kwargs)
        launch.function = call.function
        launch.launch(grid=grid, **dict(config.items))
    _say_symbols(module, name, call.specs)
    return Program(module, Outcome(name, None))


def symbol(name: str) -> str:
    """Return ``name`` as a valid symbol.

    >>> symbol("<lambda>"), symbol("cfg.a[0]")
    ('lambda', 'cfg_a_0')
    """
    made = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "kernel"
    return made if not made[0].isdigit() else f"_{made}"


class Launch:
    """A call of a kernel, to be launched with ``.launch(…)``.

    ``called``: the user wrote the call. Outside a trace, a RuntimeWarning is issued if it is dropped without a launch.
    """

    idle = False

    def __init__(
        self, kernel: Traced, args: tuple[Any, ...], kwargs: dict[str, Any], *, receiver: bool = False,
        called: bool = False,
    ):  # fmt: skip
        self.kernel = kernel
        self.args = args
        self.kwargs = kwargs
        self.receiver = receiver
        self.function: Callable[..., Any] | None = None
        self.sizes: dict[str, Any] = {}
        self.bounds: dict[str, int] = {}
        self.merges_smem = False
        self.values: tuple[Any, ...] = ()
        tracer = active()
        self.place: Place | None = None
        if tracer is not None:
            if tracer.kind != "host":
                raise CompileError(
                    "F114", f"{self.describe()} is called in a kernel; only host functions can launch kernels"
                )
            self.place = next(iter(user_places()), None)
            tracer.state["pending"].append(self)
        else:
            self.idle = called

    def __del__(self) -> None:
        if self.idle:
            warnings.warn(
                f"{self.describe()} was called but not launched, so it did not run; write "
                f"{self.kernel.name}(…).launch(grid=…, block=…)", RuntimeWarning, stacklevel=2,
            )  # fmt: skip

    def describe(self) -> str:
        """Return its name for messages."""
        return f"the kernel '{self.kernel.name}'"

    def __repr__(self) -> str:
        return f"<{self.describe()} with its arguments, to be launched>"

    def on(self, **sizes: Any) -> Launch:
        """Set the grid and block of a ``fallback`` of another launch. Nothing is launched."""
        self.sizes = sizes
        self.idle = False
        return self

    @finishes_errors
    def launch(
        self, *sizes_given: Any, grid: Any = None, block: Any = None, cluster: Any = None, smem: Any = None,
        stream: Any = None, cooperative: bool = False, pdl: bool = False, use_pdl: bool = False,
        max_number_threads: int | Sequence[int] | None = None, min_blocks_per_mp: int | None = None,
        fallback: Launch | Sequence[Launch] | None = None,
        fallback_cluster: Sequence[int] | None = None, smem_merge_branch_allocs: bool = False, **options: Any,
    ) -> Any:  # fmt: skip
        """Launch the kernel.

        Args:
            grid: number of blocks: an integer or up to three.
            block: threads per block: an integer or up to three.
            cluster: blocks per cluster, as compile-time constants.
            smem: dynamic shared memory in bytes; by default the bytes that the kernel allocates.
            stream: the stream; by default the call's.
            cooperative: require all blocks to be resident at once.
            pdl: allow the kernel to start before the preceding launch has finished (programmatic dependent launch).
            use_pdl: same as ``pdl``.
            max_number_threads: threads per block at most, an integer or up to three whose product counts, as
                ``@cute.kernel(max_threads=…)``.
            min_blocks_per_mp: number of blocks that should fit on one SM, as ``@cute.kernel(min_blocks=…)``.
            fallback: a kernel call to launch instead when an argument contradicts an assumption of this kernel. Use
                ``.on(grid=…, block=…)`` on it if its sizes differ. Arguments with ``cute.promise`` need a fallback of
                the same sizes. A list is tried in order; all but the last may have promises.
            fallback_cluster: the size of clusters where ``cluster`` does not fit on the GPU (sm_100 and later). It
                divides ``cluster`` along x and y, and equals it along z. ``cute.arch.block_in_cluster_dim()`` is the
                size of the block's own cluster.
            smem_merge_branch_allocs: the two sides of each run-time ``if`` allocate the same shared memory.
        """
        tracer = active()
        self.idle = False
        if sizes_given:
            raise KernelTypeError(
                "F115", f"launch() takes no positional arguments, got {', '.join(map(repr, sizes_given))}",
                hint="name them: launch(grid=…, block=…)",
            )  # fmt: skip
        for other in fallback if isinstance(fallback, list | tuple) else () if fallback is None else (fallback,):
            other.idle = False
        most_blocks = _cluster(cluster, self.kernel)
        smaller = None if fallback_cluster is None else _static_three(fallback_cluster, "fallback_cluster")
        smaller = _fallback_cluster(most_blocks, smaller)
        pdl = pdl or use_pdl
        most = None if max_number_threads is None else prod(_static_three(max_number_threads, "max_number_threads"))
        given = (("max_threads", most), ("min_blocks", min_blocks_per_mp))
        self.bounds = {name: bound for name, bound in given if bound is not None}
        if tracer is None:
            sizes = {"grid": grid, "block": block, "cluster": cluster, "smem": smem, "cooperative": cooperative}
            sizes |= {"pdl": pdl, "max_number_threads": most, "min_blocks_per_mp": min_blocks_per_mp}
            if smaller is not None:
                sizes["fallback_cluster"] = smaller
            if smem_merge_branch_allocs:
                sizes["smem_merge_branch_allocs"] = True
            return _launch_outside(self, sizes, stream, options)
        if options:
            raise _unknown_argument(next(iter(options)))
        if self not in tracer.state["pending"]:
            raise CompileError(
                "F119", f"{self.describe()} is launched twice", hint="call the kernel again for a second launch"
            )
        tracer.state["pending"].remove(self)
        if stream is not None and stream is not STREAM:
            raise CompileError(
                "F118", f"launch: stream must be the stream of the host function's call, got {stream!r}",
                hint="pass a cute.Stream parameter of the host function, or give stream= in the call",
            )  # fmt: skip
        flags = [n for n, on in (("cute.cooperative", cooperative), ("cute.pdl", pdl)) if on]
        following = list(fallback) if isinstance(fallback, list | tuple) else [] if fallback is None else [fallback]
        for other in following:
            if other in tracer.state["pending"]:
                tracer.state["pending"].remove(other)
        facts = LaunchFacts(_facts(_three(grid, "grid")), _facts(_block(block)), most_blocks, smaller)
        if smem_merge_branch_allocs:
            flags.append(MERGED_SMEM)
        if _launch(tracer, self, _three(grid, "grid"), _block(block), facts, smem, flags, following):
            return None
        if len(following) > 1:
            raise KernelTypeError("F133", f"{self.describe()} has several fallbacks but no promised arguments")
        for other in following:
            own = {"grid": grid, "block": block, "cluster": None, "smem": None, **other.sizes}
            of_other = _three(own["grid"], "grid"), _block(own["block"])
            facts = LaunchFacts(_facts(of_other[0]), _facts(of_other[1]), _cluster(own["cluster"], other.kernel))
            _launch(tracer, other, *of_other, facts, own["smem"], ["cute.fallback"])
        return None


def _fallback_cluster(
    cluster: tuple[int, int, int], smaller: tuple[int, int, int] | None
) -> tuple[int, int, int] | None:
    """Return the smaller size of clusters, or None if all have one size.  Raises F115 for sizes that CUDA refuses."""
    if smaller is None or smaller == cluster:
        return None
    if min(smaller) < 1 or any(n % least for n, least in zip(cluster, smaller)) or cluster[2] != smaller[2]:
        raise KernelTypeError(
            "F115",
            f"launch: fallback_cluster is {smaller}; it must divide cluster {cluster} along x and y, and equal z",
        )
    require_chip("launch with fallback_cluster", 100)
    return smaller


def _unknown_argument(name: str) -> KernelTypeError:
    own = [p.name for p in signature(Launch.launch).parameters.values() if p.kind is p.KEYWORD_ONLY]
    hint = similar(name, own) or similar(name, CALL_OPTIONS) or f"arguments: {', '.join(own)}"
    return KernelTypeError("F115", f"launch() has no argument '{name}'", hint=hint)


def _launch_outside(launch: Launch, sizes: dict[str, Any], stream: Any, options: dict[str, Any]) -> Any:
    for name in options:
        if name not in CALL_OPTIONS:
            raise _unknown_argument(name)
    kernel: Any = launch.kernel
    grid = _three(sizes.pop("grid"), "grid")
    kind = kernel.find_launch(launch, grid, sizes, options_of(kernel, options.get("device")))
    values = dict(zip(kind.specs, (*launch.values, *grid)))
    return kind.run(values, {"stream": stream, **options})


def _three(value: Any, what: str) -> tuple[Any, Any, Any]:
    if value is None:
        raise KernelTypeError("F115", f"the launch has no {what}", hint=f"{what}=128, or {what}=(x, y, z)")
    entries = list(value) if isinstance(value, tuple | list) else [value]
    if not 1 <= len(entries) <= 3:
        raise KernelTypeError("F115", f"{what} takes one to three integers, got {len(entries)}")
    made: list[Any] = []
    for entry in entries:
        if isinstance(entry, Numeric) and type(entry).is_integer:
            made.append(int(entry) if entry.is_static else entry)
        elif hasattr(entry, "__index__") and not isinstance(entry, bool | Numeric):
            made.append(int(entry))
        else:
            raise KernelTypeError("F115", f"{what} takes integers, got {entry!r}")
    x, y, z = (*made, 1, 1)[:3]
    return x, y, z


def _block(value: object) -> tuple[int | Numeric, ...]:
    """Return the three sizes of blocks.  Raises F115 for more threads, or more along z, than CUDA runs."""
    sizes = _three(value, "block")
    threads, most = prod([n for n in sizes if isinstance(n, int)]), DEFAULT_TARGET.threads
    if threads > most:
        text = f"the blocks have {threads} threads; at most {most} are allowed"
        raise KernelTypeError("F115", text, hint="launch more blocks of fewer threads")
    most_z = DEFAULT_TARGET.threads_z
    if isinstance(sizes[2], int) and sizes[2] > most_z:
        text = f"the blocks have {sizes[2]} threads along z; at most {most_z} are allowed"
        raise KernelTypeError("F115", text, hint="put the longest side of the block along x")
    return sizes


def _cluster(value: Any, kernel: Traced) -> tuple[int, int, int]:
    own = kernel.options.get("cluster") if value is None else value
    return (1, 1, 1) if own is None else _static_three(own, "cluster")


def _static_three(value: Any, what: str) -> tuple[int, int, int]:
    x, y, z = _three(value, what)
    if not all(isinstance(n, int) for n in (x, y, z)):
        raise KernelTypeError("F115", f"{what} must be known at compile time")
    return x, y, z


def _launch(
    tracer: Tracer, launch: Launch, grid: Sequence[Any], block: Sequence[Any], facts: LaunchFacts, smem: Any,
    flags: Sequence[str], following: Sequence[Launch] = (),
) -> bool:  # fmt: skip
    """Emit a launch. Return True if its fallbacks are part of it, as variants for unmet promises."""
    from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, SymbolRefAttr, UnitAttr, i32

    cluster = facts.fallback_cluster or facts.cluster
    attributes: dict[str, Any] = {flag: UnitAttr() for flag in flags if flag != MERGED_SMEM}
    launch.merges_smem = MERGED_SMEM in flags
    if facts.fallback_cluster is not None:
        attributes[PREFERRED_CLUSTER] = DenseArrayBase.from_list(i32, list(facts.cluster))
    promises = _has_promises(launch)
    *strong, last = (launch, *following) if promises else (launch,)
    if promises and (not following or any(other.sizes for other in following) or _has_promises(last)):
        raise KernelTypeError(
            "F133", f"{launch.describe()} is launched with promises but without a fallback in case they do not hold",
            hint="add fallback=: a kernel call with the same grid and block and the plain tensors",
        )  # fmt: skip
    name, passing = _trace_kernel(tracer, last, facts)
    if promises:
        variants: list[str] = []
        for other in strong:
            variant, promised = _trace_kernel(tracer, other, facts)
            if passing.values != promised.values or any(v.type != t for v, t in zip(passing.values, passing.types)):
                raise KernelTypeError(
                    "F133", f"{other.describe()} and its fallback, {last.describe()}, take different arguments",
                    hint="pass the same tensors in the same order; the fallback gets them without a promise",
                )  # fmt: skip
            variants.append(variant)
        attributes["cute.variants"] = ArrayAttr([SymbolRefAttr("kernels", [n]) for n in variants])
    smem = _beside(smem, passing.own_smem, launch)
    has_clusters = cluster != (1, 1, 1) or facts.fallback_cluster is not None
    sizes = [Int32(n).ssa for n in (*grid, *block, *(cluster if has_clusters else ()))]
    sized = [Int32(smem).ssa] if smem is not None else []
    more = [1, 1, 1] if has_clusters else [0, 0, 0]
    tracer.state["launches"] = tracer.state.get("launches", 0) + 1
    tracer.op(
        "gpu.launch_func", [*sizes, *sized, *passing.values], (), {"kernel": SymbolRefAttr("kernels", [name])},
        segments=[0, 1, 1, 1, 1, 1, 1, *more, len(sized), len(passing.values), 0], attributes=attributes,
    )  # fmt: skip
    return promises


def _has_promises(launch: Launch) -> bool:
    def has(x: object) -> bool:
        return isinstance(x, Promised) or (isinstance(x, list | tuple) and any(has(y) for y in x))

    return has([*launch.args, *launch.kwargs.values()])


def _beside(smem: Any, own: int | None, launch: Launch) -> Any:
    """Return the shared memory that a launch needs in addition to the kernel's own buffers, in bytes; None for none.

    ``smem=`` counts all bytes of a block.  If the kernel calls ``get_dyn_smem`` it counts only the additional bytes,
    and ``own`` is None.
    """
    if isinstance(smem, Numeric) and smem.is_static:
        smem = int(smem)
    if own is None or smem is None or not isinstance(smem, int):
        return smem
    if smem < own:
        text = f"{launch.describe()} allocates {own} bytes of shared memory but is launched with smem={smem}"
        text = f"{text}; it gets {own} bytes; remove smem="
        if launch.place is None:
            warnings.warn(text, RuntimeWarning, stacklevel=2)
        else:
            warnings.warn_explicit(text, RuntimeWarning, launch.place.file, launch.place.line)
    return max(smem - own, 0) or None


def _own_smem(tracer: Tracer) -> int | None:
    """Return the size of a traced kernel's buffers, in bytes; None if the kernel also uses ``get_dyn_smem``."""
    from cute_dialect.dialect.shared_memory import storage_bytes  # late: start-up
    from cute_dialect.passes.lowering.smem import smem_layout  # late: start-up

    total = 0
    for op in tracer.function.walk():
        if op.name == "cute.smem_base":
            return None
        if op.name == "cute.memref.alloc_smem":
            total += storage_bytes(op.results[0].type)  # pyright: ignore[reportArgumentType]
    return smem_layout(tracer.function).size if MERGED_SMEM in tracer.function.attributes else total


def _trace_kernel(tracer: Tracer, launch: Launch, facts: LaunchFacts) -> tuple[str, _Passing]:
    """Trace a kernel for the arguments of a launch. Return its symbol and the values passed to it."""
    kernel = launch.kernel
    function, signature = head_of(kernel)
    try:
        call = signature.bind(*launch.args, **launch.kwargs)
    except TypeError as e:
        text, hint = arguments_error(e, signature, launch.kwargs)
        raise KernelTypeError("F116", f"{launch.describe()}: {text}", hint=hint) from None
    reified = reify(kernel, function, call.arguments)
    call.apply_defaults()
    notes = {n: note for n, note in reified.annotations.items() if n in call.arguments}
    for parameter, note in notes.items():
        if not is_dynamic(call.arguments[parameter]):
            call.arguments[parameter] = _annotated(call.arguments[parameter], note, parameter)
    passing = _Passing()
    forms = {name: passing.add(name, value) for name, value in call.arguments.items()}
    name = _unique(tracer, symbol(kernel.name))
    parameters = list(zip(passing.names, passing.types))
    with kernel_function(
        tracer.module,
        name,
        parameters,
        launch=facts,
        chip=tracer.chip,
        attributes=_attributes(kernel, facts, launch),
    ) as (inner, values):
        for name_of_state in ("asserts", "users_asserts"):
            inner.state[name_of_state] = tracer.state.get(name_of_state, False)
        for parameter, (form, at) in forms.items():
            value = form.make([values[i] for i in at])
            call.arguments[parameter] = _annotated(value, notes.get(parameter), parameter)
        result = trace_boundary(_body(launch.function or reified.function), *call.args, **call.kwargs)
        if result is not None:
            raise CompileError("F117", f"{launch.describe()} returns {result!r}; a kernel cannot return a value")
    passing.own_smem = _own_smem(inner)
    return name, passing


def _body(function: Any) -> Any:
    """Return the function to trace.  Raises F150 for a generator."""
    made = converted(function)
    code = getattr(made, "__code__", None)
    if code is not None and code.co_flags & CO_GENERATOR:
        at = next(n for n, word in enumerate(code.co_code[::2]) if word == YIELD)
        raise SyntaxErrorInKernel(
            "F150", f"'{code.co_name}' has a 'yield': a decorated function cannot be a generator",
            place=place_at(code, 2 * at), hint="move the 'yield' into another function and loop over it with 'for'",
        )  # fmt: skip
    return made


def _annotated(value: Any, note: Any, label: str) -> Any:
    """Apply a kernel parameter's annotation: convert numbers to their type, check tensors."""
    note, _ = without_none(note)
    if is_number_type(note) and isinstance(value, int | float | Numeric) and type(value) is not note:
        return note(value)  # pyright: ignore[reportCallIssue]
    if isinstance(note, TensorAnnotation):
        element = getattr(value, "element_type", None)
        if (
            note.dtype is not None
            and element is not None
            and isinstance(note.dtype, type)
            and note.dtype is not element
        ):
            raise KernelTypeError("F129", f"argument '{label}' needs elements of {note.dtype!r}, got {element!r}")
    return value


def _attributes(kernel: Traced, facts: LaunchFacts, launch: Launch) -> dict[str, Any]:
    from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, UnitAttr, i32

    made: dict[str, Any] = {}
    if facts.fallback_cluster is not None:
        made[PREFERRED_CLUSTER] = DenseArrayBase.from_list(i32, list(facts.cluster))
    if launch.merges_smem:
        made[MERGED_SMEM] = UnitAttr()
    options = {**kernel.options, **launch.bounds}
    most, fit, registers = (options.get(n) for n in ("max_threads", "min_blocks", "max_regs"))
    if most is not None:
        block = [n for n in facts.block if n is not None]
        if len(block) == 3 and prod(block) > most:
            raise KernelTypeError(
                "F115", f"the kernel '{kernel.name}' has max_threads={most}, but its blocks have {prod(block)} threads"
            )
        if len(block) < 3:
            made["nvvm.maxntid"] = DenseArrayBase.from_list(i32, [most, 1, 1])
    if fit is not None:
        made["nvvm.minctasm"] = IntegerAttr(fit, i32)
    if registers is not None:
        made["nvvm.maxnreg"] = IntegerAttr(registers, i32)
    return made


def _facts(sizes: Sequence[Any]) -> Any:
    return tuple(n if isinstance(n, int) else None for n in sizes)


class _Passing:
    """The parameters of a kernel, one per SSA value, in order of first use.

    ``types`` are the parameter types, which may be more precise than the types of ``values``.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.values: list[SSAValue] = []
        self.types: list[Attribute] = []
        self.own_smem: int | None = None
        """Size of the kernel's own buffers in bytes; None if the kernel also uses ``get_dyn_smem``."""
        self._at: dict[tuple[SSAValue, Attribute], int] = {}

    def add(self, name: str, value: object) -> tuple[Form, list[int]]:
        """Add the leaves of a value. Return its form and the leaves' positions."""
        form = argument_form(value)
        leaves = form.take(value)
        where: list[int] = []
        for i, (leaf, type) in enumerate(zip(leaves, form.types, strict=True)):
            if (leaf, type) not in self._at:
                self._at[leaf, type] = len(self.values)
                self.values.append(leaf)
                self.types.append(type)
                self.names.append(self._free(symbol(name) if len(leaves) == 1 else f"{symbol(name)}_{i}"))
            where.append(self._at[leaf, type])
        return form, where

    def _free(self, name: str) -> str:
        while name in self.names:
            name += "_"
        return name


def _unique(tracer: Tracer, name: str) -> str:
    taken = {op.attributes["sym_name"].data for op in device_block(tracer.module).ops if "sym_name" in op.attributes}
    if name not in taken:
        return name
    return next(made for i in range(1, 1 << 20) if (made := f"{name}_{i}") not in taken)
