"""``python -m smoothctl``: the same as the command ``smoothctl``."""

from smoothctl.cli import main

if __name__ == "__main__":
    main()
