"""Parts of ``cute-to-base``: type conversion, construction of base ops, registers, address width, printing."""
