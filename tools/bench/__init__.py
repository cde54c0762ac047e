"""Benchmarks and the measurements behind the cost model: all that ``cute-bench`` runs.

``options`` lists the benchmarks and their options.  ``cases`` has a module per benchmark, ``cases.op`` one per group of
``cute-bench op``, and ``random`` the distributions of random problems.  ``runner`` builds, times and reports;
``checks`` compares results; ``peers`` holds the side of torch; ``processes`` starts child processes.  ``sweep`` times
many kernels on random problems, and ``fit`` fits the cost model to such sweeps.  ``tune`` is ``cute-bench tune``.
``profile`` and ``counters`` are programs that read the counters of Nsight Compute through ``ncu``.
"""
