"""The explorer's page: a kernel from its source to machine code, line by line, with what a run of it measured."""
