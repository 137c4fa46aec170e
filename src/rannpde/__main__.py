"""``python -m rannpde`` is the command ``rannpde``."""

from rannpde.cli import main

if __name__ == "__main__":
    main()
