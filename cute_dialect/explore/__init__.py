"""Explorer page: a kernel from source to machine code, line by line, with measurements of a run."""
