"""Lazy public names of a package, defined in its stub ``__init__.pyi``.

The stub holds imports, ``from package.module import name as name``, and aliases, ``other = name``.  A module of the
package, or one next to it, is imported with ``from package import module as module``.

Type checkers and editors read the stub in place of the package.  At run time the package reads the stub when one of its
names is first used, so importing one of its modules loads no other.

>>> from cute_dialect import algebra
>>> dir(algebra)[:3], algebra.Layout.__module__
(['AlgebraError', 'AnyLayout', 'Basis'], 'cute_dialect.algebra.values')
"""

from __future__ import annotations

from collections.abc import Callable


def exports(
    package: str, guard: Callable[[str, object], object] | None = None
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package whose stub defines its public names.

    ``guard`` takes the name of a public definition and the definition, and returns the object that users get.
    """
    homes: dict[str, tuple[str, str]] = {}
    """Public name -> the module that defines it, and its name there."""

    def read() -> dict[str, tuple[str, str]]:
        if not homes:
            import ast
            from pkgutil import get_data

            stub = get_data(package, "__init__.pyi")
            assert stub is not None, package
            for node in ast.parse(stub).body:
                match node:
                    case ast.ImportFrom(module=str(module), names=names):
                        homes.update({alias.name: (module, alias.name) for alias in names})
                    case ast.Assign(targets=[ast.Name(id=other)], value=ast.Name(id=name)):
                        homes[other] = homes[name]
                    case _:
                        pass
        return homes

    def get(name: str) -> object:
        import sys
        from importlib import import_module

        if name == "__all__":
            return sorted(read())
        if name.startswith("__") or name not in read():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, own = homes[name]
        is_module = f"{package}.".startswith(f"{module}.")  # a module of the package itself, or next to it
        value: object = import_module(f"{module}.{own}") if is_module else getattr(import_module(module), own)
        value = value if guard is None else guard(name, value)
        setattr(sys.modules[package], name, value)
        return value

    return get, lambda: sorted(read())
