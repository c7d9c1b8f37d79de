"""`python -m curricula`: the command line, for launchers that start modules (torchrun, accelerate)."""

from curricula.cli import main

if __name__ == "__main__":
    main()
