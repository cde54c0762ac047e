"""Gradients of norms and of cross entropy.

Norms: the blocks that the GPU holds go from row to row; while one is worked on the next is on its way into other
registers.  What the row's forward pass found is found again, with the sums of the gradient, in one exchange.  A thread
has the same columns of all rows, and adds up the gradients of their weights and biases in registers; each group of
threads writes its sums into a row of ``parts``, which :mod:`cute_dialect.kernels.combine_parts` adds up, always in the
same order.

    norm = norm_backward_program("layernorm", "bf16", 4096, "wb")
    norm(x, w, dy, dx, parts, 1e-5)                 # parts: f32, (groups of threads, 2 * columns)

Cross entropy: ``dx = (e^(x - lse) - [column is the target]) g``; nothing is reduced.
"""

# Operators and element types are those of values in a trace.
# pyright: basic, reportArgumentType=false, reportOptionalMemberAccess=false, reportOptionalOperand=false

from typing import Any

import cute_dialect.lang as cute
from cute_dialect.front.dtypes import type_of_mlir
from cute_dialect.kernels.printed import printed
from cute_dialect.kernels.row_config import MAX_CLUSTER, Plan, RowConfig, capacity, width
from cute_dialect.kernels.row_memory import Place, RowMemory, part, widened
from cute_dialect.kernels.row_sharing import Sharing, Turn
from cute_dialect.kernels.rows import add, power, where_mine, wide

__all__ = [
    "entropy_backward_text", "entropy_class", "gradient_class", "longest_gradient", "norm_backward_text",
    "part_columns", "resident",
]  # fmt: skip

VALUES = 16
"""Elements of a row that a thread has: with their gradients, those of the next row and sums they fill the registers."""

MOST = 512
"""Threads of a block: so many have 128 registers each."""


def gradient_class(element: str, n: int) -> RowConfig:
    """Return the class of rows of ``n`` elements for the gradients of norms.  Raises ValueError.

    >>> [gradient_class("bf16", n)[:4] for n in (100, 768, 4096, 5120, 32768)]
    [(32, 1, 4, 1), (64, 2, 1, 1), (256, 2, 1, 1), (320, 2, 1, 1), (512, 2, 1, 4)]
    """
    w = width(element)
    vectors, most = max(1, n // w), VALUES // w
    if vectors <= 32 * most:
        return RowConfig(32, -(-vectors // 32), 4)
    if n > longest_gradient(element):
        raise ValueError(f"expected rows of at most {longest_gradient(element)} elements, got {n}")
    cluster = 1
    while vectors > MOST * most * cluster:
        cluster *= 2
    threads = 32 * -(-vectors // (32 * most * cluster))
    return RowConfig(threads, -(-vectors // (threads * cluster)), 1, cluster)


def longest_gradient(element: str) -> int:
    """Return the length of the longest rows that gradients of norms take."""
    return MOST * MAX_CLUSTER * VALUES + width(element) - 1


def part_columns(n: int) -> int:
    """Return the columns of ``parts`` for the weights of ``n`` elements: whole vectors of f32."""
    return -(-n // 4) * 4


class Columns(RowMemory):
    """Rows of which a thread has the same columns; what is no aligned vector then is read element by element."""

    def place(self, row: Any) -> Place:
        """Return where a row is; its vectors are counted from its beginning."""
        n, w = self.n, self.plan.width
        vectors = n // w
        edges: list[tuple[Any, Any]] = []
        if not self.plan.whole:
            column = vectors * w + self.sharing.thread
            edges.append((column, column < n))
        return Place(row, True, row, 0, vectors, edges)


class Gradient:
    """The sums of a gradient beside those of a norm; a group of threads has ``forward`` numbers of the norm, then those
    of the gradient.
    """

    def __init__(self, memory: Columns, eps: Any):
        self.memory, self.plan, self.eps, self.lanes = memory, memory.plan, eps, memory.sharing.lanes

    def neutral(self, count: int) -> list[Any]:
        """Return numbers that change nothing."""
        return [0.0] * count


class RmsGradient(Gradient):
    """``dx = (g - x c) / rms``, ``c`` the mean of ``g x`` over the mean square; ``g = dy w``."""

    def of_warp(self, pieces: list[tuple[Any, Any, Any]]) -> list[Any]:
        """Return sums of ``x x`` and ``g x`` of pieces: elements, gradients, whether this thread has them."""
        squares, products = cute.Float32(0), cute.Float32(0)
        for x, g, mine in pieces:
            one, two = (x * x).sum(), (x * g).sum()
            squares += where_mine(mine, one)
            products += where_mine(mine, two)
        return self.over_lanes([squares, products], self.lanes)

    def over_lanes(self, numbers: list[Any], lanes: int, threads: int = 1) -> list[Any]:
        """Combine groups of lanes."""
        return [cute.arch.warp_reduction(x, add, lanes) for x in numbers]

    def of_row(self, numbers: list[Any], share: Any) -> None:
        """Take the sums of the row."""
        squares, products = numbers
        self.by = cute.arch.rsqrt_approx(squares * share + self.eps)
        self.c = products * share * self.by * self.by

    def normed(self, x: Any) -> Any:
        """Return what the norm makes of elements, before weights."""
        return x * self.by

    def element(self, x: Any, g: Any) -> Any:
        """Return the gradient of elements."""
        return (g - x * self.c) * self.by


class LayerGradient(Gradient):
    """``dx = (g - mean of g - y * mean of g y) / deviation``; ``y`` is the norm without weights, ``g = dy w``.

    A group of elements has five numbers: their sum, squared deviations from its own mean, how many they are; the sums
    of ``g``, and of ``g`` times deviations from the group's mean.
    """

    def of_warp(self, pieces: list[tuple[Any, Any, Any]]) -> list[Any]:
        """Return the numbers of pieces: elements, gradients, whether this thread has them."""
        near, (far, squares, count, total, products) = None, [cute.Float32(0)] * 5
        for x, g, mine in pieces:
            mean = x.sum() * (1.0 / x.size)
            near = mean if near is None else cute.where(count > 0, near, mean)
            one = [(x - near).sum(), ((x - near) * (x - near)).sum(), float(x.size), g.sum(), (g * (x - near)).sum()]
            one = [where_mine(mine, v) for v in one]
            far, squares, count = far + one[0], squares + one[1], count + one[2]
            total, products = total + one[3], products + one[4]
        away = far * cute.arch.rcp_approx(cute.max(count, 1.0))
        numbers = [near * count + far, squares - far * away, count, total, products - total * away]
        return self.over_lanes(numbers, self.lanes)

    def over_lanes(self, numbers: list[Any], lanes: int, threads: int = 1) -> list[Any]:
        """Combine groups of lanes."""
        total, squares, count, of_g, products = numbers
        own = total * cute.arch.rcp_approx(cute.max(count, 1.0))
        total, elements = (cute.arch.warp_reduction(x, add, lanes) for x in (total, count))
        far = own - total * cute.arch.rcp_approx(cute.max(elements, 1.0))
        more = (squares + far * far * count, of_g, products + of_g * far)
        squares, of_g, products = (cute.arch.warp_reduction(x, add, lanes) for x in more)
        return [total, squares, elements, of_g, products]

    def of_row(self, numbers: list[Any], share: Any) -> None:
        """Take the numbers of the row."""
        total, squares, _, of_g, products = numbers
        self.mean, self.of_g = total * share, of_g * share
        self.by = cute.arch.rsqrt_approx(squares * share + self.eps)
        self.c = products * share * self.by * self.by

    def normed(self, x: Any) -> Any:
        """Return what the norm makes of elements, before weights and biases."""
        return (x - self.mean) * self.by

    def element(self, x: Any, g: Any) -> Any:
        """Return the gradient of elements."""
        return (g - self.of_g - (x - self.mean) * self.c) * self.by


GRADIENTS = {"rmsnorm": RmsGradient, "layernorm": LayerGradient}


def norm_backward(
    x: cute.Tensor, w: Any, d: cute.Tensor, y: cute.Tensor, parts: Any, eps: cute.Float32, plan: cute.Constexpr[Plan]
):  # fmt: skip
    """Find the gradients of this block's rows, and the sums of those of the weights."""
    c = plan.config
    sharing = Sharing(c, messages=True, in_turn=True)
    memory = Columns(plan, sharing, x, [] if w is None else [w], y)
    rows, step, width = x.shape[0], cute.arch.grid_dim().x // c.cluster * c.rows, plan.width
    share = 1.0 / wide(memory.n)
    begin = memory.place(0)
    weights = memory.load(as_matrix(w), begin, 0, plan.chunks) if w is not None else None
    edge = memory.load_edges(as_matrix(w), begin) if w is not None else None
    sums = [Added(plan) for kind in "wb" if kind in plan.takes]

    def load(row: Any) -> list[Any]:
        place = memory.place(cute.min(row, rows - 1))
        both = [memory.load(t, place, 0, plan.chunks, alike=plan.whole) for t in (x, d)]
        return both + [memory.load_edges(t, place) for t in (x, d)]

    now, turn = load(sharing.row), cute.Int32(0)
    if c.cluster > 1:
        cute.arch.cluster_wait()  # every block has begun: its barrier is there
    for row in range(sharing.row, rows, step):
        coming = load(row + step)
        place, gradient = memory.place(row), GRADIENTS[plan.op](memory, eps)

        def piece(i: int, fresh: bool) -> tuple[Any, Any, Any]:
            """Return elements, gradients, and those times weights, of a chunk or, behind the last, of an edge."""
            if i == plan.chunks:
                of = [*now[2:], edge]
            else:
                of = [None if t is None else part(t, i * width, width) for t in (*now[:2], weights)]
            e, g, factors = (None if t is None else widened(t, fresh) for t in of)
            return e, g, g if factors is None else g * factors

        mine = [True] * (plan.chunks - 1) + [memory.has_last(place)] + [has for _, has in place.edges]
        pieces = [piece(i, False) for i in range(len(mine))]
        numbers = gradient.of_warp([(e, scaled, has) for (e, _, scaled), has in zip(pieces, mine)])
        gradient.of_row(sharing.exchange(gradient, numbers, Turn(turn & 1, turn >> 1 & 1)), share)
        made = memory.registers(plan.chunks)
        for i in cute.range_constexpr(len(mine)):
            e, g, scaled = piece(i, True)  # made again: kept they would take twice the registers
            for total, term in zip(sums, [gradient.normed(e) * g, g] if "w" in plan.takes else [g]):
                total.see(i, term, mine[i])
            found = gradient.element(e, scaled)
            if i == plan.chunks:
                memory.store_edges(y, place, found)
            else:
                part(made, i * width, width).store(found.to(memory.dtype))
        store(memory, y, place, made)
        for old, new in zip(now, coming):
            if old is not None:
                old.store(new.load())
        turn += 1
    for i, total in enumerate(sums):
        total.write(memory, parts, part_of(sharing, c), i * (parts.shape[1] // len(sums)), begin)
    if c.cluster > 1:
        cute.arch.cluster_arrive()  # no block is gone while another one sends to it
        cute.arch.cluster_wait()


def part_of(sharing: Sharing, config: RowConfig) -> Any:
    """Return the row of the parts that this group of threads writes."""
    block = cute.arch.block_idx().x // config.cluster
    return block * config.rows + (cute.arch.thread_idx().x // config.threads if config.rows > 1 else 0)


def as_matrix(vector: cute.Tensor) -> cute.Tensor:
    """Return a vector as a matrix of one row."""
    n = vector.shape[0]
    return cute.make_tensor(vector.iterator, cute.make_layout((1, n), stride=(n, 1)))


def store(memory: Columns, y: cute.Tensor, place: Place, values: cute.Tensor) -> None:
    """Store a row, by vectors where rows are whole aligned ones."""
    for first, n, mine in memory.pieces(place, 0, memory.plan.chunks):
        if mine:
            begin = y[place.source, None].iterator + memory.first
            cute.autovec_copy(memory.in_registers(values, first, n), memory.chunks(begin, first, n))


class Added:
    """Sums of a thread's columns over the rows that it has seen."""

    def __init__(self, plan: Plan):
        self.plan, self.edges = plan, plan.edges > 0
        self.sums = cute.make_rmem_tensor(plan.chunks * plan.width, cute.Float32)
        self.sums.fill(0.0)
        self.edge = cute.Float32(0)

    def see(self, chunk: int, term: Any, mine: Any) -> None:
        """Add elements of a chunk, or, behind the last, of an edge."""
        if chunk == self.plan.chunks:
            self.edge = self.edge + cute.where(mine, term[0], 0.0)
        else:
            at = part(self.sums, chunk * self.plan.width, self.plan.width)
            at.store(at.load() + term)

    def write(self, memory: Columns, parts: cute.Tensor, row: Any, column: Any, place: Place) -> None:
        """Write the sums into a row of the parts from a column on."""
        begin = parts[row, None].iterator + (column + memory.first)
        for first, n, mine in memory.pieces(place, 0, self.plan.chunks):
            if mine:
                source = cute.make_tensor(
                    self.sums.iterator + first * self.plan.width,
                    cute.make_layout((self.plan.width, n), stride=(1, self.plan.width)),
                )
                cute.autovec_copy(source, memory.chunks(begin, first, n))
        for at, mine in place.edges:
            if mine:
                parts[row, column + at] = self.edge


@cute.jit
def launch(
    x: cute.Tensor, w: Any, d: cute.Tensor, y: cute.Tensor, parts: Any, groups: cute.Int32 | None, eps: cute.Float32,
    plan: cute.Constexpr[Plan],
):  # fmt: skip
    """Launch as many groups of threads as the parts have rows, or as ``groups`` says where there are no parts."""
    c, held = plan.config, capacity(plan.element, plan.config)
    assert y.shape[0] == x.shape[0], "dx must have as many rows as x"
    assert d.shape[0] == x.shape[0], "dy must have as many rows as x"
    assert x.shape[1] < held.stop, f"the kernel is for rows of {held.start} to {held.stop - 1} elements"
    assert x.shape[1] >= held.start, f"the kernel is for rows of {held.start} to {held.stop - 1} elements"
    count = groups if parts is None else parts.shape[0]
    sizes = {"grid": count // c.rows * c.cluster, "block": c.block, "cluster": c.cluster}
    anywhere = Plan(plan.op, plan.element, c, plan.takes, whole=False)
    vx, vd, vy = (cute.promise_vectors(m, plan.width) for m in (x, d, y))
    kernel_of(plan)(vx, w, vd, vy, parts, eps, plan).launch(
        **sizes, fallback=kernel_of(anywhere)(x, w, d, y, parts, eps, anywhere)
    )


def kernel_of(plan: Plan) -> Any:
    """Return the kernel of a plan, which says how many registers it may have."""
    name = f"{plan.op}_backward_v" if plan.whole else f"{plan.op}_backward"
    return cute.kernel(min_blocks=resident(plan.config), name=name)(norm_backward)


def resident(config: RowConfig) -> int:
    """Return the blocks of an SM for gradients of norms: 512 threads, with 128 registers each."""
    return max(1, 512 // config.block)


@printed
def norm_backward_text(op: str, element: str, n: int, takes: str) -> cute.Compiled:
    """Return the kernel of ``rmsnorm`` or ``layernorm`` backward for the class of ``n``.

    To be called with ``(x, w, dy, dx, parts, eps)``, without ``w`` where ``takes`` has none; where there are neither
    weights nor biases, ``(x, dy, dx, groups, eps)``.  ``parts``: f32, a row a group of threads, :func:`part_columns`
    columns for weights and as many for biases; a multiple of the class' rows of a block.
    """
    config = gradient_class(element, n)
    dtype = type_of_mlir(element)
    matrix, vector = cute.Tensor[dtype, "(?,?):(?,1)"], cute.Tensor[dtype, "(?):(1)", "align<16>"]
    parts = cute.Tensor[cute.Float32, "(?,?{div=4}):(?{div=4},1)", "align<16>"] if takes else None
    groups = None if takes else cute.Int32
    w = vector if "w" in takes else None
    plan = Plan(op, element, config, takes)
    return cute.trace(launch, matrix, w, matrix, matrix, parts, groups, cute.Float32, plan)


# ------------------------------------------------------------------------------------------------------ cross entropy

AT_ONCE, THREADS = 4, 512
"""Vectors of a row that a thread works on at once, and threads that share a long row."""


def entropy_class(element: str, n: int) -> RowConfig:
    """Return the class of rows of ``n`` elements.

    >>> [entropy_class("bf16", n)[:3] for n in (100, 4096, 50257)]
    [(32, 4, 4), (128, 4, 1), (512, 4, 1)]
    """
    quarter = -(-max(1, n // width(element)) // AT_ONCE)
    threads = min(THREADS, max(32, 1 << (quarter - 1).bit_length()))
    return RowConfig(threads, AT_ONCE, 4 if threads == 32 else 1)


def entropy_backward(
    x: cute.Tensor, t: cute.Tensor, lse: cute.Tensor, g: cute.Tensor, count: Any, y: cute.Tensor, ignored: cute.Int32,
    plan: cute.Constexpr[Plan],
):  # fmt: skip
    """Find the gradient of each row of this block: vectors first, then what is around them."""
    sharing = Sharing(plan.config)
    memory = RowMemory(plan, sharing, x, [], y)
    place, w = memory.place(sharing.row), plan.width
    target, alike = t[place.source].to(cute.Int32), memory.alike(y, place)
    by = wide(g[place.source]) if count is None else wide(g[place.source]) / count[0]
    by, of_row = cute.where(target == ignored, 0.0, by), lse[place.source]

    def gradient(v: Any, first: Any, mine: Any) -> Any:
        found = power(wide(v), of_row) * by
        made = cute.make_rmem_tensor(found.size, cute.Float32)
        made.store(found)
        at = target - first
        if at >= 0 and at < found.size:
            for k in cute.range_constexpr(found.size):
                made[k] = made[k] - cute.where(at == k, by, 0.0)
        return made.load()

    from_x = memory.begin(x, place)
    row_of_y = y[place.source, None].iterator + (place.head + memory.first)
    at_once = plan.chunks * plan.config.sharing
    for first in range(0, place.vectors, at_once):
        values = memory.registers(plan.chunks)
        values.fill(0.0)
        for i in cute.range_constexpr(plan.chunks):
            if first + i * plan.config.sharing + sharing.thread < place.vectors:
                source = memory.chunks(from_x + first * w, i, 1)
                cute.autovec_copy(source, memory.in_registers(values, i, 1))
        for i in cute.range_constexpr(plan.chunks):
            number = first + i * plan.config.sharing + sharing.thread
            mine = number < place.vectors
            at = part(values, i * w, w)
            at.store(gradient(at.load(), place.head + number * w, mine).to(memory.dtype))
            if mine and place.exists:
                made = memory.in_registers(values, i, 1)
                if alike:
                    begin = row_of_y if not plan.whole else y[place.source, None].iterator + memory.first
                    cute.autovec_copy(made, memory.chunks((begin + first * w).align(16), i, 1))
                else:
                    cute.autovec_copy(made, memory.chunks(row_of_y + first * w, i, 1))
    edges = memory.load_edges(x, place)
    for j, (column, mine) in enumerate(place.edges):
        if mine and place.exists:
            y[place.source, column] = gradient(part(edges, j, 1).load(), column, mine)[0].to(memory.dtype)


@cute.jit
def launch_entropy(
    x: cute.Tensor, t: cute.Tensor, lse: cute.Tensor, g: cute.Tensor, count: Any, y: cute.Tensor, ignored: cute.Int32,
    plan: cute.Constexpr[Plan],
):  # fmt: skip
    """Launch as many blocks as the rows need."""
    c = plan.config
    assert y.shape[0] == x.shape[0], "dx must have as many rows as x"
    sizes = {"grid": cute.ceil_div(x.shape[0], c.rows), "block": c.block}
    anywhere = Plan(plan.op, plan.element, c, whole=False)
    vx, vy = (cute.promise_vectors(m, plan.width) for m in (x, y))
    entropy_kernel(plan)(vx, t, lse, g, count, vy, ignored, plan).launch(
        **sizes, fallback=entropy_kernel(anywhere)(x, t, lse, g, count, y, ignored, anywhere)
    )


def entropy_kernel(plan: Plan) -> Any:
    """Return the kernel of a plan."""
    return cute.kernel(name=f"{plan.op}_v" if plan.whole else plan.op, min_blocks=plan.resident)(entropy_backward)


@printed
def entropy_backward_text(element: str, n: int, of_loss: str, mean: bool) -> cute.Compiled:
    """Return the kernel of cross entropy backward for the class of ``n``.

    To be called with ``(x, target, lse, g, count, dx, ignored)``: ``g`` of type ``of_loss``, one for each row, perhaps
    by a stride of 0; ``count``, where it is a ``mean``, what ``g`` is divided by.
    """
    dtype = type_of_mlir(element)
    matrix, numbers = cute.Tensor[dtype, "(?,?):(?,1)"], cute.Tensor[cute.Float32, "(?):(1)"]
    g, targets = cute.Tensor[type_of_mlir(of_loss), "(?):(?)"], cute.Tensor[cute.Int64, "(?):(1)"]
    plan = Plan("cross_entropy_backward", element, entropy_class(element, n))
    count = numbers if mean else None
    return cute.trace(launch_entropy, matrix, targets, numbers, g, count, matrix, cute.Int32, plan)
