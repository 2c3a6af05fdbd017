"""Several fits at a time: in one batch on a GPU, or in processes."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from costscape.data import Dataset, Fold
from costscape.methods.end_with_parent import ending_with_this_process
from costscape.methods.method import Method
from costscape.training import Diverged
from costscape.training.progress import one_bar


def fit_on_gpu(methods: Sequence[Method], folds: Sequence[Fold], pairs: Dataset) -> set[int]:
    """Fit in one batch those methods whose class can, each without its fold; their numbers.

    A batch in which a method diverges counts as not fitted.
    """
    done: set[int] = set()
    for cls in dict.fromkeys(type(method) for method in methods):
        same = [i for i, method in enumerate(methods) if type(method) is cls]
        group = [methods[i] for i in same]
        with suppress(Diverged):
            if len(same) > 1 and cls.fit_together(group, [folds[i] for i in same], pairs):
                done.update(same)
    return done


def fit_in_processes(
    methods: Sequence[Method],
    parts: Sequence[tuple[Dataset, Dataset]],
    workers: int,
    title: str,
    shown: bool,
) -> list[Method | Diverged]:
    """Fit each method to its training and validation part, or say that it diverged.

    joblib starts the processes on this machine, or where ``joblib.parallel_config`` says.
    """
    from joblib import Parallel, delayed
    from joblib.parallel import BACKENDS, get_active_backend

    jobs = enumerate(zip(map(_quiet, methods), parts, strict=True))
    work = [delayed(_numbered)(i, method, *part) for i, (method, part) in jobs]
    here = (BACKENDS["loky"], BACKENDS["multiprocessing"])
    settings = ending_with_this_process() if isinstance(get_active_backend()[0], here) else {}
    fits: dict[int, Method | Diverged] = {}
    with one_bar(title, len(work), shown) as job_bar:
        try:
            pool = Parallel(n_jobs=workers, return_as="generator_unordered", **settings)
        except ValueError:  # Ray's backend returns all fits at the end
            pool = Parallel(n_jobs=workers)
        for done, (i, fit) in enumerate(pool(work)):
            with job_bar(done):
                fits[i] = fit
    return [fits[i] for i in range(len(methods))]


def _quiet(method: Method) -> Method:
    training = method.trains()
    if training is None:
        return method
    return method.changed(training=replace(training, progress=False))


def _numbered(
    i: int, method: Method, train: Dataset, held: Dataset
) -> tuple[int, Method | Diverged]:
    return i, method.fit_or_diverge(train, held)
