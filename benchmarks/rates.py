"""What a machine does at best: operations of a large product, bytes of a large copy, a second."""

import time
from functools import partial

import torch
from common import least


def clock(device):
    """Processor time on a CPU; on a GPU the clock, once it has finished."""

    def now():
        torch.cuda.synchronize()
        return time.perf_counter()

    return now if device == "cuda" else time.process_time


def in_a_row(work, device, times=20):
    """Seconds of one of several, so that the clock has something to measure."""

    def all_of_them():
        for _ in range(times):
            work()

    return least(all_of_them, 3, clock(device)) / times


def product_rate(n, device="cpu", times=20):
    """Operations a second of (n, n) by (n, n), a multiplication and an addition being two."""
    a, b = torch.randn(n, n, device=device), torch.randn(n, n, device=device)
    out = torch.empty_like(a)
    return 2 * n**3 / in_a_row(partial(torch.mm, a, b, out=out), device, times)


def copy_rate(n, device="cpu", times=20):
    """Bytes a second, read and written, of n numbers of four bytes."""
    source = torch.rand(n, device=device)
    target = torch.empty_like(source)
    return 2 * 4 * n / in_a_row(partial(target.copy_, source), device, times)
