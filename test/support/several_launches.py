"""A module whose host functions launch several kernels, for tests of the launcher and of ``cute-run``.

All kernels compute in i32:

* @scale: ``y = k * x``.
* @add: ``z = z + y``.  @add_late does the same, but waits for the preceding launch.
* @copy: ``y = x``.  The variant @copy_16 is for aligned arrays.

The host functions:

* @both launches @scale, then @add on its result.
* @meeting launches the cooperative kernel @meet.  Each block waits for all others, then copies the next block's
  element of ``x`` to ``y``.
* @marked is like @both, with @scale as a cooperative launch and @add_late as a dependent launch.
* @choose launches @scale if k is more than 1, else @copy.  If k is odd, it also launches @add, twice
  if k is more than 4.
"""

from __future__ import annotations

V = '!cute.memref<i32, gmem, "?:?">'
V16 = '!cute.memref<i32, gmem, align<16>, "?:1">'

_INDEX = """\
      %tid = nvvm.read.ptx.sreg.tid.x : i32
      %bid = nvvm.read.ptx.sreg.ctaid.x : i32
      %c64 = arith.constant 64 : i32
      %start = arith.muli %bid, %c64 : i32
      %i = arith.addi %start, %tid : i32
      %size = cute.size(%x) : (!T) -> !cute.int_tuple<"?">
      %n = cute.get_scalars(%size) : !cute.int_tuple<"?">
      %inside = arith.cmpi slt, %i, %n : i32
      scf.if %inside {
        %c = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
        %a = cute.memref.load(%x, %c) : (!T, !cute.coord<"?">) -> i32
"""
_END = """\
      }
      gpu.return
    }
"""


def _kernel(name: str, args: str, body: str, first: str = "!v", begin: str = "") -> str:
    head = f"    gpu.func @{name}({args}) kernel attributes {{known_block_size = array<i32: 64, 1, 1>}} {{\n"
    return head + begin + _INDEX.replace("!T", first) + body + _END


_STORE = '        cute.memref.store(%{0}, %c, %{1}) : ({2}, !cute.coord<"?">, i32) -> ()\n'


_ADD = (
    '        %b = cute.memref.load(%z, %c) : (!v, !cute.coord<"?">) -> i32\n'
    "        %s = arith.addi %a, %b : i32\n" + _STORE.format("z", "s", "!v")
)


def launch(kernel: str, args: str, marks: str = "", grid: str = "%blocks") -> str:
    """Return one ``gpu.launch_func``."""
    types = ", ".join(f"{a} : {'i32' if a == '%k' else '!v16' if a.endswith('16') else '!v'}" for a in args.split(", "))
    return (
        f"gpu.launch_func @kernels::@{kernel} blocks in ({grid}, %one, %one) threads in (%c64, %one, %one) : i32 "
        f"args({types}){marks}"
    )


_BLOCKS = """\
    %one = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %size = cute.size(%mX) : (!v) -> !cute.int_tuple<"?">
    %n = cute.get_scalars(%size) : !cute.int_tuple<"?">
    %blocks = arith.ceildivsi %n, %c64 : i32
"""


def host(name: str, body: str, args: str = "%mX: !v, %mY: !v, %mZ: !v, %k: i32") -> str:
    """Return a host function. ``body`` can use ``%blocks``, the number of blocks of 64 threads that covers ``%mX``."""
    return f"  func.func @{name}({args}) {{\n{_BLOCKS}{body}    return\n  }}\n"


CHOOSE = f"""\
    %four = arith.constant 4 : i32
    %big = arith.cmpi sgt, %k, %one : i32
    scf.if %big {{
      {launch("scale", "%mX, %mY, %k")}
    }} else {{
      {launch("copy", "%mX, %mY", " {cute.variants = [@kernels::@copy_16]}")}
    }}
    %bit = arith.andi %k, %one : i32
    %odd = arith.cmpi eq, %bit, %one : i32
    scf.if %odd {{
      %more = arith.cmpi sgt, %k, %four : i32
      %all = cute.size(%mY) : (!v) -> !cute.int_tuple<"?">
      %m = cute.get_scalars(%all) : !cute.int_tuple<"?">
      %own = arith.ceildivsi %m, %c64 : i32
      {launch("add", "%mY, %mZ", grid="%own")}
      scf.if %more {{
        {launch("add", "%mY, %mZ")}
      }}
    }}
"""


_MEET = """\
    gpu.func @meet(%x: !v, %y: !v, %count: !cute.ptr<i32, gmem>) kernel
        attributes {known_block_size = array<i32: 1, 1, 1>} {
      %one = arith.constant 1 : i32
      %bid = nvvm.read.ptx.sreg.ctaid.x : i32
      %blocks = nvvm.read.ptx.sreg.nctaid.x : i32
      %c = cute.make_coord(%bid) : (i32) -> !cute.coord<"?">
      cute.memref.store(%x, %c, %bid) : (!v, !cute.coord<"?">, i32) -> ()
      %before = cute_nvgpu.arch.atomic_add(%count, %one) {order = "acq_rel"} : (!cute.ptr<i32, gmem>, i32) -> i32
      scf.while : () -> () {
        %there = cute_nvgpu.arch.load_acquire(%count) : (!cute.ptr<i32, gmem>) -> i32
        %more = arith.cmpi slt, %there, %blocks : i32
        scf.condition(%more)
      } do {
        scf.yield
      }
      %after = arith.addi %bid, %one : i32
      %next = arith.remsi %after, %blocks : i32
      %d = cute.make_coord(%next) : (i32) -> !cute.coord<"?">
      %a = cute.memref.load(%x, %d) : (!v, !cute.coord<"?">) -> i32
      cute.memref.store(%y, %c, %a) : (!v, !cute.coord<"?">, i32) -> ()
      gpu.return
    }
"""
_MEETING = """\
  func.func @meeting(%mX: !v, %mY: !v, %count: !cute.ptr<i32, gmem>) {
    %one = arith.constant 1 : i32
    %size = cute.size(%mX) : (!v) -> !cute.int_tuple<"?">
    %n = cute.get_scalars(%size) : !cute.int_tuple<"?">
    gpu.launch_func @kernels::@meet blocks in (%n, %one, %one) threads in (%one, %one, %one) : i32
      args(%mX : !v, %mY : !v, %count : !cute.ptr<i32, gmem>) {cute.cooperative}
    return
  }
"""


def module(hosts: str) -> str:
    """Return a module with the kernels and these host functions."""
    kernels = (
        _kernel(
            "scale", "%x: !v, %y: !v, %k: i32", "        %p = arith.muli %a, %k : i32\n" + _STORE.format("y", "p", "!v")
        )
        + _kernel("add", "%x: !v, %z: !v", _ADD)
        + _kernel("add_late", "%x: !v, %z: !v", _ADD, begin="      cute_nvgpu.arch.griddepcontrol_wait() : () -> ()\n")
        + _kernel("copy", "%x: !v, %y: !v", _STORE.format("y", "a", "!v"))
        + _MEET
        + _kernel("copy_16", "%x: !v16, %y: !v16", _STORE.format("y", "a", "!v16"), "!v16")
    )
    return (
        f"!v = {V}\n!v16 = {V16}\nmodule attributes {{gpu.container_module}} {{\n  gpu.module @kernels {{\n{kernels}"
        f"  }}\n{hosts}}}\n"
    )


BOTH = host("both", f"    {launch('scale', '%mX, %mY, %k')}\n    {launch('add', '%mY, %mZ')}\n")
MARKED = host(
    "marked",
    f"    {launch('scale', '%mX, %mY, %k', ' {cute.cooperative}')}\n"
    f"    {launch('add_late', '%mY, %mZ', ' {cute.pdl}')}\n",
)
ALL = module(BOTH + host("choose", CHOOSE) + MARKED + _MEETING)
