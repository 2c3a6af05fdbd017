"""A worker process ends when the process that started it is gone, be it by kill -9.

A system call could do this (PR_SET_PDEATHSIG), but it watches the thread that started the worker,
and joblib starts workers from threads that end before them.
"""

import os
import threading
import time
from typing import Any

EVERY = 1.0  # seconds from one look to the next


def ending_with_this_process() -> dict[str, Any]:
    """Settings of ``joblib.Parallel`` for processes of this machine, which end with this one.

    A worker begins to watch before its first job: one that never gets a job would wait for ever.
    """
    return {"initializer": watch_parent, "initargs": (os.getpid(),)}


def watch_parent(parent: int) -> None:
    """Call this in a worker of process ``parent``: it ends when that is no longer its parent."""
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(EVERY)
    os._exit(1)  # nobody is left to hear of an error
