"""Output into a pipe whose reader has ended."""

import subprocess
import sys

PROGRAM = """
import typer
from costscape.cli.run_options import errors_in_words

@errors_in_words
def lines() -> None:
    for _ in range(100_000):
        print("a line of a long table")

typer.run(lines)
"""


def test_a_reader_that_has_seen_enough_is_no_error():
    command = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout.readline() == "a line of a long table\n"
        run.stdout.close()
        assert run.stderr.read() == ""
    assert run.returncode != 0
