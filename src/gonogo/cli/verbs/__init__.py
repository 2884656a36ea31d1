"""One module a verb, each with its options and a `COMMAND`."""
