"""Race detection: clocks of threads and copies, the history of accesses, and reports."""
