"""Functions of elements over any number of arrays."""
