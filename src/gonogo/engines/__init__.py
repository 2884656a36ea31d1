"""Engines of others that carry runs over several machines: they queue, pick a worker, wait, and notice the dead."""
