import gzip
import hashlib
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from costscape.problems import fetch, mobility, sales, wind
from costscape.problems.files.sources import (
    PUBLIC,
    SALES,
    PublicFile,
    cache_folder,
    digest,
    find,
    standing,
    together,
)

GOOD = b"Date,power\n" + b"01/01/2020,5\n" * 20_000


class Host(BaseHTTPRequestHandler):
    """/good sends the file, /half its first half, /long goes on after its end."""

    def do_GET(self):
        if self.path not in ("/good", "/other", "/half", "/long"):
            self.send_error(404)
            return
        body = {"/other": GOOD.replace(b"5", b"6"), "/long": GOOD * 2}.get(self.path, GOOD)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if self.path == "/half" else body)

    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def host():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Host)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(autouse=True)
def no_data_of_this_machine(monkeypatch, tmp_path):
    monkeypatch.delenv("COSTSCAPE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "*")


def offer(monkeypatch, *urls, content=GOOD):
    sha = hashlib.sha256(content).hexdigest()
    monkeypatch.setitem(PUBLIC, "wind", (PublicFile("wind.csv", sha, len(content), urls),))


def names(folder):
    return [p.name for p in Path(folder).rglob("*") if p.is_file()]


def test_a_fetched_file_is_the_published_one_and_is_then_found(monkeypatch, host, tmp_path):
    offer(monkeypatch, f"{host}/good")
    (path,) = fetch("wind")
    assert path == tmp_path / "cache" / "costscape" / "wind" / "wind.csv"
    assert path.read_bytes() == GOOD
    assert names(tmp_path) == ["wind.csv"]
    assert find("wind") == (path,)
    assert standing("wind", (path,)) == "the known public file"


def test_a_folder_may_be_named_and_the_bytes_are_reported(monkeypatch, host, tmp_path):
    offer(monkeypatch, f"{host}/good")
    seen = []
    (path,) = fetch("wind", tmp_path / "mine", report=lambda *args: seen.append(args))
    assert path == tmp_path / "mine" / "wind" / "wind.csv"
    done = [d for _, d, _ in seen]
    assert done == sorted(set(done))
    assert seen[-1] == ("wind.csv", len(GOOD), len(GOOD))
    assert len(seen) > 1


def test_a_file_url_works_too(monkeypatch, tmp_path):
    (tmp_path / "there.csv").write_bytes(GOOD)
    offer(monkeypatch, (tmp_path / "there.csv").as_uri())
    assert fetch("wind")[0].read_bytes() == GOOD


@pytest.mark.parametrize(
    ("path", "came"),
    [("other", f"{len(GOOD)} bytes"), ("half", f"{len(GOOD) // 2} bytes"), ("long", "more than")],
)
def test_other_content_is_refused_and_nothing_is_kept(monkeypatch, host, tmp_path, path, came):
    offer(monkeypatch, f"{host}/{path}")
    with pytest.raises(ValueError, match=f"but {came}.* other content came; nothing was kept"):
        fetch("wind", tmp_path)
    assert names(tmp_path) == []


def test_the_second_address_serves_when_the_first_does_not(monkeypatch, host, tmp_path):
    for first in ("gone", "other"):
        offer(monkeypatch, f"{host}/{first}", f"{host}/good")
        assert fetch("wind", tmp_path / first)[0].read_bytes() == GOOD


def test_a_missing_page_is_a_sentence(monkeypatch, host, tmp_path):
    offer(monkeypatch, f"{host}/gone")
    with pytest.raises(ConnectionError, match=r"gone could not be read \(Not Found\).* by hand"):
        fetch("wind", tmp_path)
    assert names(tmp_path) == []


def test_an_unreachable_host_is_a_sentence(monkeypatch, tmp_path):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    offer(monkeypatch, f"http://127.0.0.1:{port}/x")
    with pytest.raises(ConnectionError, match=r"could not be read .*refused.* Check the network"):
        fetch("wind", tmp_path)


def test_a_silent_host_is_left_after_the_timeout(monkeypatch, tmp_path):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        offer(monkeypatch, f"http://127.0.0.1:{silent.getsockname()[1]}/x")
        with pytest.raises(ConnectionError, match=r"could not be read \(timed out\)"):
            fetch("wind", tmp_path, timeout=0.1)
    assert names(tmp_path) == []


def test_a_file_that_is_there_is_not_fetched_again(monkeypatch, tmp_path):
    offer(monkeypatch, "http://127.0.0.1:1/nowhere")
    (tmp_path / "wind").mkdir()
    (tmp_path / "wind" / "wind.csv").write_bytes(GOOD)
    assert fetch("wind", tmp_path) == (tmp_path / "wind" / "wind.csv",)


def test_another_file_of_that_name_is_not_overwritten(monkeypatch, host, tmp_path):
    offer(monkeypatch, f"{host}/good")
    mine = tmp_path / "wind" / "wind.csv"
    mine.parent.mkdir()
    mine.write_text("mine")
    with pytest.raises(FileExistsError, match=r"wind\.csv is in the way"):
        fetch("wind", tmp_path)
    assert mine.read_text() == "mine"


def test_what_needs_a_login_says_what_to_do_by_hand(tmp_path):
    with pytest.raises(FileNotFoundError) as error:
        fetch("sales", tmp_path)
    assert "https://www.kaggle.com/competitions/demand-forecasting-kernels-only" in str(
        error.value
    )
    assert str(tmp_path / "sales" / "store_item_demand.csv") in str(error.value)


def test_an_unknown_name_is_told_the_known_ones():
    with pytest.raises(ValueError, match=r"'pjm', 'sales', 'wind'\], but got 'solar'"):
        fetch("solar")


def test_every_known_file_has_a_checksum_and_a_secure_way_to_it():
    for file in [f for files in PUBLIC.values() for f in files]:
        assert len(bytes.fromhex(file.sha256)) == 32
        assert file.urls or file.page
        assert all(url.startswith("https://") and url.endswith(file.name) for url in file.urls)


def put(folder, text, name="TenneTTSO.csv"):
    path = folder / "wind" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_the_named_folder_comes_before_the_cache(monkeypatch, tmp_path):
    assert find("wind") is None
    cached = put(cache_folder(), "cached")
    assert find("wind") == (cached,)
    monkeypatch.setenv("COSTSCAPE_DATA", str(tmp_path))
    assert find("wind") == (cached,)
    named = put(tmp_path, "named")
    assert find("wind") == (named,)
    monkeypatch.setenv("COSTSCAPE_DATA", "")
    assert find("wind") == (cached,)


def test_without_an_absolute_cache_variable_the_home_folder_serves(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    for value in ("", "relative/place"):
        monkeypatch.setenv("XDG_CACHE_HOME", value)
        assert cache_folder() == tmp_path / ".cache" / "costscape"


def test_a_variable_that_names_no_folder_is_an_error_and_no_stand_in(monkeypatch, tmp_path):
    monkeypatch.setenv("COSTSCAPE_DATA", str(tmp_path / "typo"))
    for load in (wind, sales, mobility):
        with pytest.raises(FileNotFoundError, match="COSTSCAPE_DATA needs to name a folder"):
            load()


def test_half_a_set_is_an_error_and_no_stand_in(monkeypatch, tmp_path):
    monkeypatch.setenv("COSTSCAPE_DATA", str(tmp_path))
    (tmp_path / "mobility").mkdir()
    (tmp_path / "mobility" / "adjacency_matrix.npy").touch()
    with pytest.raises(FileNotFoundError, match=r"but \['od_day20180101_20210228.npz'"):
        mobility()
    with pytest.raises(FileNotFoundError, match="needs the files"):
        together("mobility", tmp_path / "nowhere")


def test_a_packed_file_is_known_by_its_content_however_it_was_packed(monkeypatch, tmp_path):
    sha = hashlib.sha256(GOOD).hexdigest()
    file = PublicFile(SALES.name, sha, len(GOOD), page="p", plain=SALES.plain)
    monkeypatch.setitem(PUBLIC, "sales", (file,))
    plain, packed = tmp_path / SALES.plain, tmp_path / SALES.name
    plain.write_bytes(GOOD)
    assert file.inside(tmp_path) == plain
    for level in (1, 9):
        packed.write_bytes(gzip.compress(GOOD, level))
        assert standing("sales", (packed,)) == "the known public file"
    assert standing("sales", (plain,)) == "the known public file"
    packed.write_bytes(gzip.compress(GOOD)[:-20])
    assert digest(packed) == ""
    assert standing("sales", (packed,)).startswith("NOT the known public file")
