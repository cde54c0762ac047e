"""Benchmarks and the measurements behind the cost model: all that ``cute-bench`` runs.

``cases`` lists the benchmarks, ``cases.op`` the groups of ``cute-bench op``, and ``random_problems`` the distributions
of ``op --random``.  ``runner`` builds, checks, times and reports.  ``sweep``
times many kernels on random problems, and ``fit`` fits the cost model to such sweeps.  ``tune`` is ``cute-bench tune``.
``profile`` and ``counters`` are programs that read the counters of Nsight Compute.
"""
