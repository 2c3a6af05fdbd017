"""python -m costscape"""

from costscape.cli import main

if __name__ == "__main__":
    main()
