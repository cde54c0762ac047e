# ruff: noqa: F821  (lit defines config and lit_config)
"""lit configuration of the examples, like that of ``test/``; run ``lit examples``."""

import os

here = os.path.dirname(__file__)
lit_config.load_config(config, os.path.join(here, "..", "test", "lit.cfg.py"))
config.name = "cute-dialect-examples"
config.suffixes = [".py"]
config.excludes = ["lit.cfg.py"]
config.test_source_root = here
config.test_exec_root = os.path.join(config.test_exec_root, "examples")
