"""The machine that compiled code runs on: groups of lanes, barriers, copies in flight and wgmma."""
