"""A file is replaced whole or not at all, whoever else writes, dies or sweeps."""

import os
import resource
import signal
import subprocess
import sys
import threading
import time

import pytest

from costscape.whole_file import replacing, sweep_parts, write_whole


def test_content_replaces_content_and_no_part_stays(tmp_path):
    path = tmp_path / "new" / "file"
    for content in (b"old", b"newer"):
        write_whole(path, content)
        assert path.read_bytes() == content
    assert [p.name for p in path.parent.iterdir()] == ["file"]


def test_a_full_disk_leaves_the_old_file_and_says_so(tmp_path):
    write_whole(tmp_path / "file", b"old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(
            OSError, match=r"file could not be written \(File too large\).*is as it"
        ):
            write_whole(tmp_path / "file", bytes(10**6))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert (tmp_path / "file").read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("error", [ConnectionError, KeyboardInterrupt])
def test_an_error_while_a_file_is_written_leaves_the_old_one(tmp_path, error):
    def write():
        with replacing(tmp_path / "file") as out:
            out.write(b"half")
            raise error("cut off")

    write_whole(tmp_path / "file", b"old")
    with pytest.raises(error, match=r"^cut off$"):
        write()
    assert (tmp_path / "file").read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_writers_of_one_name_do_not_disturb_each_other(tmp_path):
    errors = []

    def write(content):
        try:
            for _ in range(40):
                write_whole(tmp_path / "file", content)
        except OSError as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(bytes([i]) * 1000,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert len(set((tmp_path / "file").read_bytes())) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


WRITER = """
import sys, time
from pathlib import Path
from costscape.whole_file import _new_part
part, out = _new_part(Path(sys.argv[1]))
print(part, flush=True)
time.sleep(60)
"""


def test_a_part_is_swept_when_its_writer_is_dead_whatever_its_date(tmp_path):
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path / "file")], stdout=subprocess.PIPE, text=True
    )
    part = writer.stdout.readline().strip()
    try:
        for date in (time.time() + 86_400, time.time() - 86_400):
            os.utime(part, (date, date))
            sweep_parts(tmp_path.glob("*.part"))
            assert os.path.exists(part)
    finally:
        writer.kill()
        writer.wait()
        writer.stdout.close()
    os.utime(part, (time.time() + 86_400,) * 2)
    write_whole(tmp_path / "file", b"by another process")  # sweeps the parts of its name
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
