"""What a run is about: the event and the change, from the command line, a webhook's body, GitHub Actions or git.

Nothing here decides what runs; it only fills `trigger` and `context` of the first record.
"""

from gonogo.cli.triggers.detect import Asked, Detected, detect, for_plan

__all__ = ["Asked", "Detected", "detect", "for_plan"]
