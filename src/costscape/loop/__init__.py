"""The parts of the training loop in ``costscape.train``.

underway    a network, and all that a fit of it changes
steps       one step: the gradient, Adam, the average that follows
captured    steps recorded as a CUDA graph (recording)
together    the gradients of several networks, their LSTMs stacked (stacked, stacked_kernels)
checkpoint  a fit on disk
"""
