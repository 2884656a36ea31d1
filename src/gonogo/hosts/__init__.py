"""Hosts: what acts on the core's commands. `local` runs a workflow in this process; all hosts share `loop`."""
