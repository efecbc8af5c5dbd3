"""`python -m ckm` is the command `ckm`."""

from ckm._cli.app import main

if __name__ == "__main__":
    main()
