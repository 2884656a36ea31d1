"""Makes text of a run for people and for other programs. Computes only: nothing is printed or written here."""
