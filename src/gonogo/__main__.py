"""`python -m gonogo` is the `gonogo` command."""

from gonogo.cli.main import main

if __name__ == "__main__":
    main()
