"""Autograd nodes of operations, and their replay with the backward pass.

:func:`node_of` makes an autograd function of a forward and a backward function.  Both take a :class:`Context`, which
has the interface of torch's ``ctx``.  While a call is recorded, each node adds itself to the recording.  If the call
added one node, :meth:`Node.replayed` returns a function that launches the recorded kernels and adds a node whose
backward pass is cached as well: it is recorded when it first runs, and replayed afterwards.

Host time in µs, with Python 3.11 on a shared virtual machine: 2.6 to add a node (``torch.add``: 1.0), 3 to replay the
backward pass of softmax without the driver.
"""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUntypedBaseClass=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import torch

from cute_dialect.op.arrays.dtypes import tf32_allowed
from cute_dialect.op.execute.call_cache import AddressMismatch, KnownCalls
from cute_dialect.op.execute.launcher import CURRENT
from cute_dialect.op.execute.recording import Recording
from cute_dialect.op.problems.conv import tf32_of_convolutions
from cute_dialect.runtime import native


class Context:
    """State of an autograd node: attributes, and tensors for the backward pass."""

    needs_input_grad: Sequence[bool] = ()
    """Whether each argument needs a gradient."""
    saved_tensors: tuple[Any, ...] = ()
    """The saved tensors; set in the backward pass only."""

    if TYPE_CHECKING:  # attributes that a forward pass adds

        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...

    def __init__(self) -> None:
        self._saved: tuple[Any, ...] = ()
        self._constants: tuple[Any, ...] = ()
        self.materializes = True
        """Missing gradients of results are passed as zeros, not as None."""
        self.aliases: tuple[bool, ...] = ()
        """For each argument, whether its gradient is that of the only result; () if the backward pass computes any."""
        self.replay: _Replay | None = None
        """The recording of the node's call."""
        self.settings: Callable[[], object] | None = None
        """Returns the settings of torch on which the backward pass depends, or :func:`no_settings`.

        By default these are the settings of TF32 if a saved tensor is f32.
        """

    def save_for_backward(self, *tensors: Any) -> None:
        """Save arguments and results, or None."""
        self._saved = tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Declare results that have no gradient."""
        self._constants = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Select whether missing gradients are passed as zeros."""
        self.materializes = value

    def taken(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return the saved tensors and the non-differentiable results, and release them."""
        found = self._saved, self._constants
        self._saved = self._constants = ()
        return found

    def at(self, saved: tuple[Any, ...], needs: Sequence[bool]) -> Context:
        """Return the state for one backward pass."""
        found = object.__new__(Context)
        found.__dict__.update(self.__dict__, saved_tensors=saved, needs_input_grad=needs)
        return found


class Node(NamedTuple):
    """A node that a recorded call added to the autograd graph."""

    args: tuple[Any, ...]
    outputs: Any  # a tensor, or a tuple of tensors
    saved: tuple[Any, ...]
    constants: tuple[Any, ...]  # results without gradients
    context: Context
    backward: Callable[..., Any]

    def replayed(self, recording: Recording, tensors: Sequence[Any], result: Any) -> Callable[..., Any] | None:
        """Return ``run(*tensors)``, which replays a recorded call and adds its node; None if it cannot be replayed.

        ``run`` raises AddressMismatch, and does nothing, if the addresses do not match.

        Args:
            result: the value that the call returned.
        """
        outputs = self.outputs if isinstance(self.outputs, tuple) else (self.outputs,)
        returned = self._returned(result)
        kept = outputs[returned[0]] if len(returned) == 1 else tuple([outputs[i] for i in returned])
        form = _form_of(result, self.outputs if len(returned) == len(outputs) else kept)
        places, rest = list[int](), list(enumerate(self.args))
        for t in tensors:
            found = next((pair for pair in rest if pair[1] is t), None)
            places.append(-1 if found is None else found[0])
            rest = [pair for pair in rest if pair is not found]
        others = [x for _, x in rest if isinstance(x, torch.Tensor)]
        lost = any([place < 0 and t.requires_grad for place, t in zip(places, tensors)])
        if form is None or lost or any([x.requires_grad for x in others]):
            return None
        places_of = [*enumerate(tensors), *[(-1 - i, x) for i, x in enumerate(outputs)]]
        saved, more = list[int](), list[Any]()
        for t in self.saved:
            if t is not None:
                place = next((i for i, x in places_of if x is t), None)
                saved.append(-1 - len(outputs) - len(more) if place is None else place)
                more += [t] if place is None else []
        constants = tuple([i for i, x in enumerate(outputs) if any([x is t for t in self.constants])])
        extension = native.loaded()
        if any([x is t for x in outputs for t in tensors]) or (constants and self.context.materializes):
            extension = None  # Nodes in C++ have neither arguments among their outputs nor zeros for constants.
        flat = (*outputs, *more)
        run = recording.again(flat if extension is not None else (self.outputs, tuple(more)) if more else self.outputs)
        if run is None:
            return None
        kept = tuple([i for i, t in enumerate(self.saved) if t is not None])
        dropped = [x for i, x in enumerate(outputs) if i not in returned]
        inner = tuple([any([t is x for x in dropped]) for t in self.saved if t is not None])
        replay = self.context.replay = _Replay(self, tuple(places), kept, inner)
        if extension is not None:
            return self._native(extension, run, replay, tensors, saved, constants, returned, form)
        text = _text_of(saved, len(outputs) if isinstance(self.outputs, tuple) else 0)
        apply = _apply_of(run, replay, len(tensors), text, constants, returned)
        if form == "found":
            return apply
        pick = _pick_of(form)
        return lambda *given: pick(apply(*given))

    def _native(
        self, extension: Any, run: Callable[..., Any], replay: _Replay, tensors: Sequence[Any], saved: Sequence[int],
        constants: Sequence[int], returned: tuple[int, ...], form: str,
    ) -> Callable[..., Any]:  # fmt: skip
        """Return :meth:`replayed` in C++: ``run(*tensors)``, which returns None if the addresses do not match."""
        outputs = self.outputs if isinstance(self.outputs, tuple) else (self.outputs,)
        needs = tuple([t.requires_grad for t in tensors])
        absent = tuple([i not in returned for i in range(len(outputs))])
        is_single = not isinstance(self.outputs, tuple) or (any(absent) and len(returned) == 1)
        pick: object = None if form == "found" else _pick_of(form)
        if isinstance(pick, itemgetter):
            pick = int(form[len("found[") : -1])
        return extension.Node(
            len(tensors), run, saved, [i in constants or not outputs[i].is_floating_point() for i in returned],
            returned, len(outputs), is_single, pick, replay.materializes, replay.aliases, needs,
            replay.settings, absent if any(absent) else None, replay.calls, replay.gradients,
        )  # fmt: skip

    def _returned(self, result: Any) -> tuple[int, ...]:
        """Return the indices of the outputs that the replayed node has.

        Each output takes time, so those that are not in ``result`` are left out if missing gradients may be None.
        """
        outputs = self.outputs if isinstance(self.outputs, tuple) else (self.outputs,)
        used = _parts_of(result)
        found = tuple([i for i, x in enumerate(outputs) if any([x is t for t in used])])
        return tuple(range(len(outputs))) if self.context.materializes or not found else found


def apply_of(function: type[torch.autograd.Function]) -> Callable[..., Any]:
    """Return the ``apply`` of an autograd function for calls that no transform of ``torch.func`` observes.

    It leaves out what ``torch.autograd.Function.apply`` does for ``torch.func``: 5 to 10 µs of Python.
    """
    return super(torch.autograd.Function, function).apply  # pyright: ignore[reportAttributeAccessIssue]


def node_of(forward: Callable[..., Any], backward: Callable[..., Any]) -> type[torch.autograd.Function]:
    """Return the autograd function of ``forward(context, *args)`` and ``backward(context, *grads)``.

    The forward function may save arguments and results, and set attributes that depend only on types, shapes, strides
    and numbers.
    """

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *args: Any) -> Any:
            context = ctx.context = Context()
            outputs = forward(context, *args)
            saved, constants = context.taken()
            ctx.save_for_backward(*saved)
            if not context.materializes:
                ctx.set_materialize_grads(False)
            if constants:
                ctx.mark_non_differentiable(*constants)
            recording = CURRENT.recording
            if recording is not None:
                recording.nodes.append(Node(args, outputs, saved, constants, context, backward))
            return outputs

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
            context = ctx.context
            if context.replay is not None:
                return context.replay.of_recorded(ctx, grads)
            return backward(context.at(ctx.saved_tensors, ctx.needs_input_grad), *grads)

    return Function


# ------------------------------------------------------------------------------------------------------------- replay


class _Replay:
    """The backward pass of a recorded node."""

    def __init__(self, node: Node, places: tuple[int, ...], saved: tuple[int, ...], inner: tuple[bool, ...]) -> None:
        self._places = places  # index in the node's arguments of each tensor of the call, -1 for none
        self._saved = saved  # index among the node's saved tensors of each saved tensor that is not None
        self._inner = inner  # for each saved tensor: it is an output that replayed nodes do not have
        self._count = len(node.args), len(node.saved)
        self.outputs = len(node.outputs) if isinstance(node.outputs, tuple) else 0
        self.materializes = node.context.materializes
        aliases = node.context.aliases
        self.aliases = tuple([place >= 0 and aliases[place] for place in places]) if aliases else ()
        self._context, self._backward = node.context, node.backward
        self.calls = KnownCalls()
        self.settings = node.context.settings
        """Returns the torch settings that the backward pass depends on; None if there are none."""
        if self.settings is None and any([t.dtype == torch.float32 for t in node.saved if t is not None]):
            self.settings = _tf32_settings
        elif self.settings is no_settings:
            self.settings = None

    def gradients(self, needs: tuple[bool, ...], saved: tuple[Any, ...], grads: tuple[Any, ...]) -> Any:
        """Return the gradients of the tensors of the call.

        Args:
            needs: whether each tensor needs a gradient.
            saved: the saved tensors that are not None.
            grads: gradients of the results.
        """
        how: Any = needs
        tensors = saved + grads
        if self.settings is not None:
            how = how, self.settings()
        if grads[0] is None or (len(grads) > 1 and any([g is None for g in grads])):
            how = how, tuple([g is None for g in grads])
            tensors = tuple([t for t in tensors if t is not None])
        done = self.calls.again(how, *tensors)
        if done is not None:
            return done
        args, count = self._count
        of_args, of_saved = [False] * args, [None] * count
        for place, need in zip(self._places, needs):
            if place >= 0:
                of_args[place] = need
        for place, t in zip(self._saved, saved):
            of_saved[place] = t
        context = self._context.at(tuple(of_saved), tuple(of_args))

        def compute() -> tuple[Any, ...]:
            found = self._backward(context, *grads)
            found = found if isinstance(found, tuple) else (found,)
            return tuple([None if place < 0 else found[place] for place in self._places])

        if torch.is_grad_enabled() or not tensors:
            return compute()
        return self.calls.recorded(how, tensors, compute, views=True)

    def of_recorded(self, ctx: Any, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the gradients of the arguments of the node that was recorded."""
        of_args = ctx.needs_input_grad
        needs = tuple([place >= 0 and of_args[place] for place in self._places])
        saved = [t for t in ctx.saved_tensors if t is not None]
        # Replayed nodes save these tensors without a node, and the guard of a cached call sees the difference.
        saved = [t.detach() if inner else t for t, inner in zip(saved, self._inner)]
        found = self.gradients(needs, tuple(saved), grads)
        made: list[Any] = [None] * len(of_args)
        for place, grad in zip(self._places, found):
            if place >= 0:
                made[place] = grad
        return tuple(made)


def no_settings() -> None:
    """Return the settings of torch on which a backward pass depends: none."""


def _tf32_settings() -> object:
    return tf32_allowed(), tf32_of_convolutions()


def _text_of(saved: Sequence[int], outputs: int) -> tuple[str, ...]:
    """Return saved tensors as code: arguments (i >= 0), or outputs and then ``more`` tensors (-1 - i).

    Args:
        outputs: number of outputs in a tuple; 0 for a single tensor.
    """
    made = [f"found[{i}]" for i in range(outputs)] or ["found"]
    return tuple([
        f"a{i}" if i >= 0 else made[-1 - i] if -1 - i < len(made) else f"more[{-1 - i - len(made)}]" for i in saved
    ])  # fmt: skip


def _parts_of(result: Any) -> list[Any]:
    """Return the tensors of a call's result."""
    if type(result) in (tuple, dict):
        return [t for x in (result.values() if type(result) is dict else result) for t in _parts_of(x)]
    return [result]


def _form_of(result: Any, outputs: Any) -> str | None:
    """Return Python code for a call's result, given the outputs ``found`` of its node; None if there is none."""
    if result is outputs:
        return "found"
    for i, t in enumerate(outputs if isinstance(outputs, tuple) else ()):
        if result is t:
            return f"found[{i}]"
    if type(result) is tuple:
        parts = [_form_of(x, outputs) for x in result]
        return None if None in parts else f"({''.join(f'{x}, ' for x in parts)})"
    if type(result) is dict:
        items = [(name, _form_of(x, outputs)) for name, x in result.items()]
        if all([type(name) is str and x is not None for name, x in items]):
            return f"{{{', '.join(f'{name!r}: {x}' for name, x in items)}}}"
    return None


@lru_cache(maxsize=64)
def _pick_of(form: str) -> Callable[[Any], Any]:
    """Compile the code that :func:`_form_of` returned to a function of ``found``."""
    if form.startswith("found[") and form.count("[") == 1:
        return itemgetter(int(form[len("found[") : -1]))
    return cast("Callable[[Any], Any]", eval(f"lambda found: {form}"))


def _apply_of(
    run: Callable[..., Any], replay: _Replay, tensors: int, saved: tuple[str, ...], constants: tuple[int, ...],
    returned: tuple[int, ...],
) -> Callable[..., Any]:  # fmt: skip
    """Return ``apply(*tensors)``, which replays a call and adds its node.

    Each recording has an autograd function of its own, because a closure is faster than an argument or an attribute.

    Args:
        run: replays the forward pass.
        replay: replays the backward pass.
        saved: saved tensors, as code over the arguments ``a0``, ``a1``, …, the outputs ``found``, and ``more`` tensors.
        constants: indices of outputs without gradients.
        returned: indices of the outputs that the node has.
    """
    how = replay.materializes, replay.settings is not None, replay.aliases
    form = _NodeForm(tensors, saved, constants, replay.outputs, returned, *how)
    make = _maker(form)
    forward, backward = make(run, replay.gradients, replay.calls, replay.settings, AddressMismatch)
    functions = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    function: Any = type("Replayed", (torch.autograd.Function,), functions)
    node = getattr(function, "_backward_cls", None)
    if isinstance(node, type) and hasattr(node, "apply"):  # torch's method looks up the backward function at each call
        setattr(node, "apply", backward)  # noqa: B010
    return apply_of(function)


class _NodeForm(NamedTuple):
    """Cache key of the generated code of a node."""

    tensors: int
    saved: tuple[str, ...]  # code of the saved tensors
    constants: tuple[int, ...]  # indices of outputs without gradients
    outputs: int  # 0 for a single tensor, else the number of tensors in a tuple
    returned: tuple[int, ...]  # indices of the outputs that the node has
    materializes: bool  # missing gradients are zeros
    has_settings: bool  # the backward pass depends on settings of torch
    aliases: tuple[bool, ...]  # for each tensor, whether its gradient is that of the result; () if some are computed


@lru_cache(maxsize=256)
def _maker(form: _NodeForm) -> Callable[..., Any]:
    tensors, saved, constants, outputs, returned, materializes, has_settings, aliases = form
    given = ", ".join(f"a{i}" for i in range(tensors))
    constants = tuple([i for i in constants if i in returned])
    result, grads, how = "found", ["g0"], "(needs, settings())" if has_settings else "needs"
    if outputs:
        names = {i: f"g{n}" for n, i in enumerate(returned)}
        grads = [names.get(i, "None") for i in range(outputs)]
        if len(returned) < outputs:
            result = (
                f"found[{returned[0]}]" if len(returned) == 1 else f"({''.join(f'found[{i}], ' for i in returned)})"
            )
            how = f"({how}, {tuple([i not in returned for i in range(outputs)])})"
    taken = [g for g in grads if g != "None"]
    lines = [
        "def make(run, gradients, calls, settings, mismatch):",
        f"    def forward(ctx, {given}):",
        f"        found = run({given})",
        "        if found is None:",
        "            raise mismatch",
        *["        found, more = found"] * any(x.startswith("more") for x in saved),
        *[f"        ctx.save_for_backward({', '.join(saved)})"] * bool(saved),
        *["        ctx.set_materialize_grads(False)"] * (not materializes),
        *[f"        ctx.mark_non_differentiable({', '.join(f'found[{i}]' for i in constants)})"] * bool(constants),
        f"        return {result}",
        f"    def backward(ctx, {', '.join(taken)}):",
        *[f"        return ({''.join('g0, ' if x else 'None, ' for x in aliases)})"] * bool(aliases),
        f"        needs, saved = ctx.needs_input_grad, {'ctx.saved_tensors' if saved else '()'}",
        f"        done = calls.again({how}, *saved, {', '.join(taken)})",
        *["        if done is not None:", "            return done"],
        f"        return gradients(needs, saved, ({', '.join(grads)},))",
        "    return forward, backward",
    ]
    space: dict[str, Any] = {}
    exec(compile("\n".join(lines) + "\n", "<a replayed node>", "exec"), space)
    return cast("Callable[..., Any]", space["make"])
