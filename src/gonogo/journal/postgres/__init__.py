"""Runs in Postgres, for workers on several machines; the same records, written by one writer a run.

The tables begin with `gonogo_` (schema.py) and are made in the connection's schema at the first use. Needs psycopg (the
extra `durable`), so nothing here but `address.py` is imported before an address of a Postgres was given.
"""
