"""Folds fitted on a Ray cluster decide with the same bits: python folds_on_ray.py prints True."""

import joblib
import ray
import torch
from ray.util.joblib import register_ray

import costscape as cs

rng = torch.Generator().manual_seed(0)
x = torch.rand(80, 2, generator=rng)
y = 1 + x[:, :1] + torch.rand(80, 1, generator=rng)
task = cs.SeparableTask(
    lambda y, a: 3 * (y - a).relu() + (a - y).relu(), cs.Box(0.0, 4.0, dim=1), convex=True
)
method = cs.TwoStage(task, training=cs.Training(epochs=2, progress=False))
here = cs.CrossFit(method, folds=2).fit(x, y).decide(x)
ray.init(num_cpus=2, object_store_memory=100_000_000, log_to_driver=False, include_dashboard=False)
register_ray()
with joblib.parallel_config("ray", n_jobs=2):
    there = cs.CrossFit(method, folds=2, workers=2).fit(x, y).decide(x)
print(torch.equal(here, there))
