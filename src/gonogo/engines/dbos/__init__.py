"""DBOS Transact on Postgres as the engine: its queues carry segments and calls, its tables remember who has them.

What DBOS (3.4, MIT) doesn't do without its proprietary server is to give a dead worker's work to another one that
lives: that is `takeover.py`. Everything else is its own.
"""
