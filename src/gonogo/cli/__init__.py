"""The command line: reads arguments, terminal and environment, asks `app` to act, prints what `report` makes."""
