"""The memory of runs: what happened and what was decided, on disk, readable by everything that explains or resumes."""
