"""python -m costscape, and the command costscape."""

import sys


def main() -> None:
    """Run the command line, or say which package it lacks."""
    try:
        from costscape.cli import app
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("costscape"):
            raise
        sys.exit(f"costscape needs {error.name} here. Install it: pip install 'costscape[cli]'.")
    app()


if __name__ == "__main__":
    main()
