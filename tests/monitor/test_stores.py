"""Both stores keep what they acknowledge and give it back; their pages are the same."""

import os
import signal
import sqlite3
import subprocess
import sys
import uuid

import numpy as np
import pytest

from costscape.monitor import StoreError, Thresholds, render_findings, watch
from costscape.monitor.sqlite_store import SqliteStore

KILLS = 4
WRITER = """
import sys
from costscape.monitor import Record, open_store, utc_now
store, start = open_store(sys.argv[1]), sys.argv[2]
for k in range(10**6):
    ids = [f"{start}-{k}-{i}" for i in range(3)]
    store.append(
        [Record(id, utc_now(), "shop", "v", "r", {"a": 1.0}, {"b": 2.0}, 0.5, ()) for id in ids]
    )
    if k % 3 == 0:
        store.attach({ids[0]: [float(k)]})
        print(f"outcome {ids[0]} {k}", flush=True)
    print("\\n".join(ids), flush=True)
"""


@pytest.fixture(params=["sqlite", "postgres"])
def place(request, tmp_path):
    """The address of an empty store."""
    if request.param == "sqlite":
        yield str(tmp_path / "decisions.sqlite")
        return
    yield from empty_schema(request.getfixturevalue("postgres"))


def empty_schema(url):
    import psycopg

    name = f"t{uuid.uuid4().hex[:8]}"
    with psycopg.connect(url, autocommit=True) as database:
        database.execute(f"CREATE SCHEMA {name}")
    yield f"{url}?options=-csearch_path%3D{name}"


def test_records_and_outcomes_come_back_as_they_were(place, decided, law, opened):
    X, Y = law(np.random.default_rng(1), 7)
    records = decided(X)
    store = opened(place)
    store.append(records[:4])
    store.append(records[4:])
    assert opened(place).read("shop", 100) == records
    assert [r.id for r in store.read("shop", 3)] == ["4", "5", "6"]
    assert store.models() == {"shop": 7}
    assert store.attach({"1": Y.iloc[1].tolist(), "2": [0.0, 0.0]}) == 0
    assert store.attach({"2": Y.iloc[2].tolist(), "3": Y.iloc[3].tolist()}) == 1
    found = [r.outcome for r in opened(place).read("shop", 100)]
    assert found == [None, *(tuple(Y.iloc[i]) for i in (1, 2, 3)), None, None, None]
    assert store.models_of(["1", "9"]) == {"1": "shop"}


def test_a_batch_is_kept_whole_or_not_at_all(place, decided, law, opened):
    records = decided(law(np.random.default_rng(1), 4)[0])
    store = opened(place)
    store.append(records[:2])
    with pytest.raises(StoreError, match="cannot be used"):
        store.append([*records[2:], records[0]])
    with pytest.raises(StoreError, match="cannot be used"):
        store.attach({"0": [1.0, 1.0], "unknown": [1.0, 1.0]})
    assert [(r.id, r.outcome) for r in store.read("shop", 9)] == [("0", None), ("1", None)]
    store.append(records[2:])
    assert store.models() == {"shop": 4}


def test_a_killed_process_loses_nothing_that_it_acknowledged(place, opened):
    """Each time a process is killed with SIGKILL while it writes; then all ids are looked up."""
    acknowledged, outcomes = [], {}
    for start in range(KILLS):
        words = [sys.executable, "-c", WRITER, place, str(start)]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=env)
        lines = [process.stdout.readline() for _ in range(20 + 7 * start)]
        process.send_signal(signal.SIGKILL)
        # what the pipe still holds was acknowledged, too; its last line may be cut off
        lines += process.stdout.read().rpartition("\n")[0].splitlines()
        process.wait()
        process.stdout.close()
        for words in map(str.split, lines):
            if words[0] == "outcome":
                outcomes[words[1]] = (float(words[2]),)
            else:
                acknowledged.append(words[0])
    store = opened(place)
    kept = {record.id: record.outcome for record in store.read("shop", 10**6)}
    assert len(acknowledged) > 60
    assert not set(acknowledged) - set(kept)
    assert {id: kept[id] for id in outcomes} == outcomes
    assert len(kept) % 3 == 0  # batches are whole


def test_the_page_is_the_same_from_both_stores(tmp_path, postgres, model, decided, law, opened):
    rng = np.random.default_rng(3)
    X, Y = law(rng, 150, level=2.0)
    pages = []
    (url,) = empty_schema(postgres)
    for place in (tmp_path / "d.sqlite", url):
        store = opened(place)
        store.append(decided(X))
        store.attach({str(i): Y.iloc[i].tolist() for i in range(120)})
        at = Thresholds(recent=100)
        found = watch("shop", store.read("shop", at.rows), model, at)
        pages.append((str(found), render_findings(found, at)))
    assert pages[0] == pages[1]
    assert "120 with an outcome" in pages[0][0]


def test_a_lost_server_is_a_sentence_without_the_password(opened):
    with pytest.raises(
        StoreError, match=r"The database d on 127\.0\.0\.1 cannot be used"
    ) as found:
        opened("postgresql://me:secret@127.0.0.1:1/d")
    assert "secret" not in str(found.value)


def test_a_lost_connection_is_made_again(postgres, decided, law, opened):
    import psycopg

    (url,) = empty_schema(postgres)
    records = decided(law(np.random.default_rng(1), 3)[0])
    store = opened(url)
    store.append(records[:1])
    with psycopg.connect(postgres, autocommit=True) as database:
        others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> %s"
        database.execute(
            others + " AND backend_type = 'client backend'", (database.info.backend_pid,)
        )
    with pytest.raises(StoreError):
        store.append(records[1:2])
    store.append(records[1:])
    assert store.models() == {"shop": 3}


# ---- files


def test_sqlite_commits_to_disk_and_hides_the_file(tmp_path, decided, law, opened):
    path = tmp_path / "d.sqlite"
    store = opened(path)
    assert store._database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert store._database.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
    assert path.stat().st_mode & 0o777 == 0o600


def test_files_that_are_no_store_are_refused_in_a_sentence(tmp_path, decided, law, opened):
    with pytest.raises(StoreError, match="There is no store of decisions at"):
        opened(tmp_path / "none.sqlite", create=False)
    with pytest.raises(StoreError, match="cannot be opened for writing"):
        opened(tmp_path / "no folder" / "d.sqlite")
    (tmp_path / "text").write_text("no database, only some text " * 50)
    with pytest.raises(StoreError, match="file is not a database"):
        opened(tmp_path / "text")
    SqliteStore(tmp_path / "later").close()
    with sqlite3.connect(tmp_path / "later") as database:
        database.execute("UPDATE costscape_log SET format = 9")
    with pytest.raises(StoreError, match="needs tables of format 1, but has format 9"):
        opened(tmp_path / "later")
    with pytest.raises(ValueError, match="but got redis://"):
        opened("redis://host")


def test_a_removed_file_takes_no_more_records(tmp_path, decided, law, opened):
    store = opened(tmp_path / "d.sqlite")
    (tmp_path / "d.sqlite").unlink()
    with pytest.raises(StoreError, match="removed or replaced"):
        store.append(decided(law(np.random.default_rng(1), 1)[0]))


def test_a_full_disk_is_a_sentence_and_keeps_the_old_records(tmp_path, decided, law, opened):
    store = opened(tmp_path / "d.sqlite")
    records = decided(law(np.random.default_rng(1), 60)[0])
    store.append(records[:1])
    pages = store._database.execute("PRAGMA page_count").fetchone()[0]
    store._database.execute(f"PRAGMA max_page_count={pages}")
    with pytest.raises(StoreError, match="full"):
        store.append(records[1:])
    assert [r.id for r in store.read("shop", 99)] == ["0"]
