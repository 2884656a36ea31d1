"""Temporal as the engine: a workflow per run carries its segments, one per call carries that.

Nothing but names is in its history: a run's journal is in the store, which all workers reach. So payloads are small,
histories short, and replaying them never depends on a version of gonogo. Temporal knows no limit of calls over all
workers (`calls_everywhere`); a rate holds per task queue.
"""
