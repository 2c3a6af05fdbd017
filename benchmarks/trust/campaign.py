"""What all scripts of the campaign share: count cases, and print one JSON line.

{"script": ..., "goal": ..., "count": 2000, "failures": 0, "seconds": 12.3, "examples": [...]}
"""

import argparse
import json
import time
from pathlib import Path

EXAMPLES = 5  # failures that a line names
WORDS = 300  # characters of each


class Campaign:
    """Counts cases and failures of one goal.

    Args:
        script: path of the script.
        goal: str. What must hold of every case.
        minutes: float, default 0. After this time ``late`` is True; 0 for no limit.
    """

    def __init__(self, script, goal, minutes=0.0):
        self.minutes = minutes
        self.script, self.goal = Path(script).stem, goal
        self.count, self.failures, self.examples, self.notes = 0, 0, [], {}
        self.start = time.perf_counter()

    def case(self, holds, words="", cases=1, failed=1):
        """Count cases at once; ``failed`` of them fail unless ``holds``."""
        self.count += cases
        if not holds:
            self.failures += failed
            if len(self.examples) < EXAMPLES:
                self.examples.append(str(words)[:WORDS])

    @property
    def late(self):
        """Whether no further case should begin."""
        return 0 < self.minutes < (time.perf_counter() - self.start) / 60

    def line(self):
        return {
            "script": self.script,
            "goal": self.goal,
            "count": self.count,
            "failures": self.failures,
            "seconds": round(time.perf_counter() - self.start, 1),
            **({"notes": self.notes} if self.notes else {}),
            "examples": self.examples,
        }


def main(run, doc, **defaults):
    """Parse one option for each argument of ``run``, run it, print its line."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    for name, value in defaults.items():
        parser.add_argument(f"--{name}", type=type(value), default=value)
    found = run(**vars(parser.parse_args()))
    print(json.dumps(found.line()))
    return int(found.failures > 0)
