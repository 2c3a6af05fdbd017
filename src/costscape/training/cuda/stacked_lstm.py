"""The LSTMs of n networks as one recurrence over stacked weights.

    (i, f, g, o)_t = W x_t + V h_(t-1) + b        s(i), s(f), tanh(g), s(o) are the gates
    c_t = s(f) c_(t-1) + s(i) tanh(g),            h_t = s(o) tanh(c_t)

All hours of W x + b are one product for all networks, and so is each hour of V h; what is learned
of all hours' W and V is one product each on the way back. cuDNN does the same for one network, in
smaller pieces: on a GPU an hour of many networks takes hardly longer than that of one. There it is
a Triton kernel (``stacked_kernels``), elsewhere torch operations.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import dropout

from costscape.training.cuda.triton_support import buildable

LEAST = 16  # hidden units: a tile of the kernels


def alike(lstms: Sequence[nn.LSTM]) -> bool:
    """Whether they can be stacked: of the same sizes, reading forward, without projections."""

    def marks(lstm: nn.LSTM) -> tuple[Any, ...]:
        like = next(lstm.parameters())
        sizes = lstm.input_size, lstm.hidden_size, lstm.num_layers, lstm.dropout
        return *sizes, lstm.training, like.device, like.dtype

    plain = (one.bias and not one.bidirectional and not one.proj_size for one in lstms)
    return all(plain) and len({marks(one) for one in lstms}) == 1


def fast(lstm: nn.LSTM) -> bool:
    """Whether the kernels can do it: on a GPU, in single precision."""
    like = next(lstm.parameters())
    return (
        like.is_cuda
        and like.dtype == torch.float32
        and lstm.hidden_size % LEAST == 0
        and buildable(like.device)
    )


def last_codes(
    lstms: Sequence[nn.LSTM], inputs: Sequence[Float[Tensor, "B T channels"]]
) -> Float[Tensor, "n B hidden"]:
    """The last hidden state of the last layer of each: lstm(x)[1][0][-1].

    Dropout between the layers is drawn for all at once, from torch's own generator.
    """
    first = lstms[0]
    h = stack(inputs).transpose(1, 2).contiguous()
    for layer in range(first.num_layers):
        w, v, b, also = (
            stack([getattr(one, f"{name}_l{layer}") for one in lstms])
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        top = layer + 1 == first.num_layers
        h = _layer(h, w, v, b + also, top)
        if not top and first.dropout > 0:
            h = dropout(h, first.dropout, first.training)
    return h


def _layer(x: Tensor, w: Tensor, v: Tensor, b: Tensor, top: bool) -> Tensor:
    h: Tensor = _Layer.apply(x, w, v, b, top)  # type: ignore[no-untyped-call]
    return h


class _Layer(torch.autograd.Function):
    """x (n, T, B, channels), W (n, 4H, channels), V (n, 4H, H), b (n, 4H) -> h (n, T, B, H), of
    which the top layer gives the last hour, (n, B, H)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor, v: Tensor, b: Tensor, top: bool) -> Tensor:
        with _precision(x):
            pre = torch.baddbmm(b.unsqueeze(1), x.flatten(1, 2), w.mT).unflatten(1, x.shape[1:3])
            h: Tensor
            gates, c, h = _hours(x).forward(pre, v)
        ctx.save_for_backward(x, w, v, gates, c, h)
        return h[:, -1] if top else h

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dh: Tensor) -> tuple[Tensor | None, ...]:
        x, w, v, gates, c, h = ctx.saved_tensors
        with _precision(x):
            d = _hours(x).backward(dh.contiguous(), v, gates, c)
            flat = d.flatten(1, 2)
            dx = torch.bmm(flat, w).unflatten(1, x.shape[1:3]) if ctx.needs_input_grad[0] else None
            dw = torch.bmm(flat.mT, x.flatten(1, 2))
            dv = torch.bmm(d[:, 1:].flatten(1, 2).mT, h[:, :-1].flatten(1, 2))
        return dx, dw, dv, flat.sum(1), None


class _Plain:
    """The hours by torch operations."""

    @staticmethod
    def forward(pre: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """W x + b (n, T, B, 4H), which becomes the gates; c and h (n, T, B, H)."""
        c = pre.new_empty(*pre.shape[:3], v.shape[2])
        h = torch.empty_like(c)
        for t, now in enumerate(pre.unbind(1)):
            if t > 0:
                now.baddbmm_(h[:, t - 1], v.mT)
            i, f, g, o = now.chunk(4, -1)
            for gate in (i, f, o):
                gate.sigmoid_()
            torch.mul(i, g.tanh_(), out=c[:, t])
            if t > 0:
                c[:, t].addcmul_(f, c[:, t - 1])
            torch.mul(o, c[:, t].tanh(), out=h[:, t])
        return pre, c, h

    @staticmethod
    def backward(dh: Tensor, v: Tensor, gates: Tensor, c: Tensor) -> Tensor:
        """The adjoint of W x + b, (n, T, B, 4H), from that of h, or of its last hour alone."""
        if dh.ndim == 3:
            hours = dh.new_zeros(c.shape)
            hours[:, -1] = dh
            dh = hours
        d = torch.empty_like(gates)
        dc = torch.zeros_like(c[:, 0])
        for t in reversed(range(d.shape[1])):
            i, f, g, o = gates[:, t].chunk(4, -1)
            di, df, dg, do = d[:, t].chunk(4, -1)
            last = t + 1 == d.shape[1]
            into = dh[:, t] if last else torch.baddbmm(dh[:, t], d[:, t + 1], v)
            bent = c[:, t].tanh()
            dc = dc + into * o * (1 - bent * bent)
            do.copy_(into * bent * o * (1 - o))
            di.copy_(dc * g * i * (1 - i))
            dg.copy_(dc * i * (1 - g * g))
            df.copy_(dc * c[:, t - 1] * f * (1 - f) if t > 0 else torch.zeros_like(f))
            dc = dc * f
        return d


def _hours(like: Tensor) -> Any:
    """Kernels on a GPU; ``fast`` says whether they can be had there."""
    if not like.is_cuda or like.dtype != torch.float32:
        return _Plain

    return stacked_kernels


def stack(parts: Sequence[Tensor]) -> Tensor:
    """One alone is not copied."""
    return torch.stack(list(parts)) if len(parts) > 1 else parts[0].unsqueeze(0)


@contextmanager
def _precision(like: Tensor) -> Iterator[None]:
    """Products as in cuDNN's LSTM, which may use TF32 where other products may not."""
    if not like.is_cuda:
        yield
        return
    matmul = torch.backends.cuda.matmul
    # torch wants its two ways of saying this to agree
    before = torch.get_float32_matmul_precision(), matmul.fp32_precision
    tf32 = torch.backends.cudnn.rnn.fp32_precision == "tf32"  # type: ignore[attr-defined]
    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before[0])
        matmul.fp32_precision = before[1]
