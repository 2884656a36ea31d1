"""How a store and its workers take growth: figures of real runs, and a simulation that goes on from them.

python -m bench.growth measure     what runs of each kind cost a real Postgres, with two real workers
python -m bench.growth simulate    the busiest hours of days of a million runs, with failures, from those figures
"""
