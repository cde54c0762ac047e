"""The public path of :mod:`cute_dialect.compat.cutlass`."""

from cute_dialect.compat.cutlass import __dir__ as __dir__
from cute_dialect.compat.cutlass import __getattr__ as __getattr__

if __name__ == "__main__":
    from cute_dialect.compat.run_program import main

    raise SystemExit(main())
