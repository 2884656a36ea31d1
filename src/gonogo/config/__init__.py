"""Workflow files to plans: `load(path, …)` and `loads(text, …)` give a `Loaded`, `find_config(start)` a `Found`."""

from gonogo.config.files import Found, find_config
from gonogo.config.loader import Loaded, load, loads

__all__ = ["Found", "Loaded", "find_config", "load", "loads"]
