"""``python -m evidex``: the command, where its script is not on the path."""

from evidex.cli.app import main

if __name__ == "__main__":
    main()
