"""How near is a training step on wind to what the card could do?

What the card does at best is measured: a large product of matrices in single precision, the same
with TF32 (which cuDNN's LSTM may use), and a large copy. The step's operations and bytes are
counted, as if everything were fused and every number fetched once; its floor is the longer of the
two times, and its share is the floor over what the step takes. A floor nearer to the truth is
cuDNN's LSTM alone, recorded, forward and backward: its 24 hours follow one another, however wide
the card. Size and data are those of bench_gpu.py.

    operations   3 x 2 B T 4H (1 + 3H)     two LSTM layers of H, forward, then twice that backward
                 3 x 2 B S (H + J)         weights of S points; g
                 J S d x 30 + P x 12       f and its slope; Adam
    bytes        4 x 9 P                   P parameters read twice, gradients, Adam's two moments
                 4 x 24 B T H              gates, cells and codes of both layers, written and read
                 4 x 4 (J S + B S)         costs and weights, and their gradients

python benchmarks/bench_roofline.py
"""

from dataclasses import dataclass

import torch
from bench_gpu import (
    HISTORY,
    HORIZON,
    Size,
    device_for,
    epoch_seconds,
    method_of,
    windows_of,
)
from common import reported, show
from rates import clock, copy_rate, in_a_row, product_rate

from costscape import LSTM


@dataclass(frozen=True)
class Counted:
    lstm: float  # operations
    others: float
    bytes: float


def counted(size):
    B, H, S, J, T, d = size.batch, size.hidden, size.points, size.actions, HISTORY, HORIZON
    P = 4 * H * (1 + 3 * H + 4) + S * (H + d)  # two biases in each layer
    lstm = 3 * 2 * B * T * 4 * H * (1 + 3 * H)
    others = 3 * 2 * B * S * (H + J) + 30 * J * S * d + 12 * P
    return Counted(lstm, others, 4 * (9 * P + 24 * B * T * H + 4 * (J * S + B * S)))


def lstm_seconds(size, device):
    """Forward and backward of one batch, as recorded work on a GPU."""
    torch.manual_seed(0)
    lstm = LSTM(hidden=size.hidden).to(device)
    x = torch.rand(size.batch, HISTORY, 1, device=device)

    def work():
        lstm.zero_grad(set_to_none=True)
        lstm(x).sum().backward()

    if device == "cpu":
        return in_a_row(work, device)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return in_a_row(graph.replay, device)


def results(size=None, matrix=8192, copied=2**28):
    size = size or Size()
    device = device_for(size)
    lstm_in_tf32 = torch.backends.cudnn.allow_tf32 and device == "cuda"
    train, _ = windows_of(size)
    steps = -(-len(train) // size.batch)
    taken = epoch_seconds(method_of(size, device), train, size.epochs, clock(device)) / steps
    alone = lstm_seconds(size, device)
    flops, moved = product_rate(matrix, device), copy_rate(copied, device)
    torch.set_float32_matmul_precision("high")
    tf32 = product_rate(matrix, device)
    torch.set_float32_matmul_precision("highest")
    count = counted(size)
    compute = count.lstm / (tf32 if lstm_in_tf32 else flops) + count.others / flops
    memory = count.bytes / moved
    floor = max(compute, memory)
    done = (count.lstm + count.others) / taken
    work = f"{(count.lstm + count.others) / 1e9:.3g} GFlop and {count.bytes / 1e6:.3g} MB"
    return [
        reported("product of large matrices, single precision", flops / 1e12, "TFlop/s"),
        reported("product of large matrices, TF32", tf32 / 1e12, "TFlop/s"),
        reported("large copy, read and written", moved / 1e9, "GB/s"),
        reported(
            "wind training step: floor",
            1e6 * floor,
            "us",
            f"{work}; computing {1e6 * compute:.0f}, moving {1e6 * memory:.0f} us",
        ),
        reported(
            "wind training step: taken", 1e6 * taken, "us", f"{done / 1e12:.3g} TFlop/s achieved"
        ),
        reported("wind training step: share, floor over taken", 100 * floor / taken, "%"),
        reported(
            "wind training step: cuDNN's LSTM alone, recorded",
            1e6 * alone,
            "us",
            f"{100 * alone / taken:.0f} % of the step",
        ),
    ]


if __name__ == "__main__":
    print(show(results()))
