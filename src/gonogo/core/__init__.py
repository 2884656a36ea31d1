"""The pure core: decides what happens next in a run. No I/O, no clock, no randomness, no globals."""
