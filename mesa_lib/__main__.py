"""`python -m mesa_lib`."""

from mesa_lib.experiments.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
