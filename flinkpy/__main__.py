"""``python -m flinkpy``: the command line."""

from flinkpy.cli.main import main

if __name__ == "__main__":
    main()
