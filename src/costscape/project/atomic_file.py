"""Write a file whole or not at all, and never over one that exists unless that is asked for."""

import os
from pathlib import Path

from costscape import whole_file


def check_free(path: Path, force: bool) -> None:
    """Raise OSError where the file exists and may not be written over, or cannot be written.

    Args:
        path: the file to write later.
        force: it may exist.
    """
    if path.is_dir():
        raise IsADirectoryError(f"{path} needs to be a file, but is a folder. Add a file name.")
    if path.exists() and not force:
        raise FileExistsError(f"{path} exists. Take another name, or write over it with --force.")
    home = next(folder for folder in path.absolute().parents if folder.exists())
    if not home.is_dir():
        raise NotADirectoryError(
            f"{path} needs a folder to be written to, but {home} is a file. Take another name."
        )
    if not os.access(home, os.W_OK):
        raise PermissionError(
            f"{path} needs a folder that can be written to, but {home} cannot. Take another one."
        )


def write_whole(path: Path, text: str, force: bool) -> None:
    """Write text to a temporary file beside ``path`` and rename it; folders are made.

    Args:
        path: the file.
        text: its contents, written as UTF-8.
        force: write over a file that exists.
    """
    check_free(path, force)
    whole_file.write_whole(path, text.encode())
