"""Model files that somebody made to do harm end in one sentence, in bounded time and memory."""

import copy
import os
import resource
import sys
import time

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import costscape as cs
from costscape.methods import saving

FEW = cs.Training(epochs=1, device="cpu", progress=False)
SENTENCE = "is not a whole costscape model file"
MEMORY = 2**31  # bytes that a load may take
SECONDS = 20  # on a busy machine; a free core takes 2


def task():
    return cs.SeparableTask(lambda y, a: (y - a).abs(), cs.Box(0.0, 1.0, dim=2))


MODELS = {
    "neighbours": lambda: cs.NearestNeighbours(task(), k=3),
    "df2": lambda: cs.DF2(task(), folds=2, points=8, training=FEW),
    "mixture": lambda: cs.TwoStage(task(), cs.Mixture(2), training=FEW),
    "forest": lambda: cs.RandomForest(task(), trees=4),
    "cme": lambda: cs.CME(task()),
}


@pytest.fixture(scope="module")
def heads(tmp_path_factory):
    """The tensors and the header of a file of each model."""
    rng = torch.Generator().manual_seed(0)
    x, y = torch.rand(40, 3, generator=rng), torch.rand(40, 2, generator=rng)
    path = tmp_path_factory.mktemp("models") / "m"
    found = {}
    for name, make in MODELS.items():
        make().fit(x, y).save(path)
        found[name] = saving.read(path)
    return found


@pytest.fixture(scope="module")
def little_memory():
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/status") as status:
        taken = next(int(line.split()[1]) for line in status if line.startswith("VmSize"))
    resource.setrlimit(resource.RLIMIT_AS, (taken * 1024 + MEMORY, hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def places(value, at=()):
    if at:
        yield at
    if isinstance(value, dict):
        for key in value:
            yield from places(value[key], (*at, key))
    elif isinstance(value, list):
        for i in range(min(len(value), 2)):
            yield from places(value[i], (*at, i))


def changed(head, at, value):
    head = copy.deepcopy(head)
    holder = head
    for key in at[:-1]:
        holder = holder[key]
    if value is REMOVED:
        del holder[at[-1]]
    else:
        holder[at[-1]] = value
    return head


def nested(levels):
    value = []
    for _ in range(levels):
        value = [value]
    return value


REMOVED = object()
VALUES = (
    *(REMOVED, None, True, -1, 0, 2**31, 10**12, 1e308, float("nan"), "x", [], {}),
    *([1] * 100_000, nested(400), {"tuple": [1, 2]}, {"method": "DF2", "settings": {}}),
    {"is": "DF2", "kwargs": {}},
    {"partial": "MLP", "args": [10**9], "kwargs": {}},
    {"partial": "MLP", "args": [3], "kwargs": {"layers": 10**7}},
)


def load_in_time(path):
    """Load; an error has to be a sentence that names the file, or what was passed."""
    begin, words = time.perf_counter(), SENTENCE
    try:
        cs.load(path, task())
    except ValueError as error:
        words = str(error)
    assert any(known in words for known in (SENTENCE, "no such method", "was fitted"))
    assert time.perf_counter() - begin < SECONDS


@pytest.mark.filterwarnings("ignore:.*of an earlier version")
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_a_changed_header_ends_in_a_sentence(heads, little_memory, tmp_path, data):
    tensors, head = heads[data.draw(st.sampled_from(sorted(heads)))]
    at = data.draw(st.sampled_from(list(places(head))))
    saving.write(tmp_path / "m", tensors, changed(head, at, data.draw(st.sampled_from(VALUES))))
    load_in_time(tmp_path / "m")


LARGE = {
    "points": ("df2", ("fitted", "facts", "fits", 0, "points"), 2 * 10**9),
    "shape of x": ("neighbours", ("fitted", "x_shape"), [48_000, 10**6]),
    "shape of y": ("neighbours", ("fitted", "y_shape"), [10**9]),
    "rows": ("cme", ("fitted", "facts", "rows"), 10**9),
    "nodes": ("forest", ("fitted", "facts", "nodes"), 10**11),
    "components": ("mixture", ("settings", "forecast", "kwargs", "components"), 10**9),
    "layers": ("mixture", ("settings", "encoder"), VALUES[-1]),
    "width": ("mixture", ("settings", "encoder"), VALUES[-2]),
}


@pytest.mark.parametrize("name", LARGE)
def test_a_small_file_cannot_ask_for_a_large_model(heads, little_memory, tmp_path, name):
    model, at, value = LARGE[name]
    tensors, head = heads[model]
    saving.write(tmp_path / "m", tensors, changed(head, at, value))
    begin = time.perf_counter()
    with pytest.raises(ValueError, match=SENTENCE):
        cs.load(tmp_path / "m", task())
    assert time.perf_counter() - begin < SECONDS


def test_a_header_of_deep_brackets_is_refused(heads, tmp_path, monkeypatch):
    tensors, head = heads["neighbours"]
    text = "[" * 10**5 + "]" * 10**5
    monkeypatch.setattr(saving.json, "dumps", lambda value: text)
    saving.write(tmp_path / "m", tensors, head)
    monkeypatch.undo()
    with pytest.raises(ValueError, match=rf"{SENTENCE}.*RecursionError"):
        cs.load(tmp_path / "m", task())


@pytest.mark.parametrize("name", ["os.system", "this", "problems", "Oracle", "load", "__class__"])
@pytest.mark.parametrize("key", ["is", "partial", "name"])
def test_a_name_in_a_file_is_never_imported(heads, tmp_path, name, key):
    sys.modules.pop("this", None)
    tensors, head = heads["mixture"]
    value = {key: name, "args": ["touch planted"], "kwargs": {}}
    saving.write(tmp_path / "m", tensors, changed(head, ("settings", "forecast"), value))
    with pytest.raises(ValueError, match=rf"{SENTENCE}.*does not have|is your own code"):
        cs.load(tmp_path / "m", task())
    assert "this" not in sys.modules


def test_a_file_names_no_place_and_no_compiler_for_a_later_fit(heads, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tensors, head = heads["mixture"]
    planted = {"checkpoint": str(tmp_path / "planted"), "compile": True}
    kwargs = {**head["settings"]["training"]["kwargs"], **planted}
    head = changed(head, ("settings", "training", "kwargs"), kwargs)
    saving.write(tmp_path / "m", tensors, changed(head, ("settings", "cache"), "planted"))
    model = cs.load(tmp_path / "m", task())
    assert (model.training.checkpoint, model.training.compile) == (None, False)
    model.fit(torch.rand(40, 3), torch.rand(40, 2))
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_a_pipe_is_refused_at_once_and_a_dangling_link_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match=rf"pipe {SENTENCE}.*no plain file"):
        cs.load(tmp_path / "pipe", task())
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match=r"no model file .*link"):
        cs.load(tmp_path / "link", task())


@pytest.mark.parametrize("name", [".", "", "folder", "pipe"])
def test_a_model_is_not_saved_as_a_folder_or_pipe(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    model = cs.Constant(task()).fit(torch.rand(20, 3), torch.rand(20, 2))
    with pytest.raises(OSError, match=r"is a folder\. Add a file name|is no plain file"):
        model.save(name)
    assert {path.name for path in tmp_path.iterdir()} == {"folder", "pipe"}
