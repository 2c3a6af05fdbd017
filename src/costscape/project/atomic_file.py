"""Write a file whole or not at all, and never over one that exists unless that is asked for."""

from pathlib import Path

from costscape import whole_file


def check_free(path: Path, force: bool) -> None:
    """Raise FileExistsError where the file exists and may not be written over."""
    if path.exists() and not force:
        raise FileExistsError(f"{path} exists. Take another name, or write over it with --force.")


def write_whole(path: Path, text: str, force: bool) -> None:
    """Write text to a temporary file beside ``path`` and rename it; folders are made."""
    check_free(path, force)
    whole_file.write_whole(path, text.encode())
