"""The container file names files, extras and options that exist. No container engine runs here."""

import json
import re
import shlex
import subprocess
import sys
import threading
import tomllib
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import typer

from costscape.cli import app
from costscape.serve.edge import OPEN
from costscape.serve.service_settings import TOKEN, Settings

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def lines():
    """(instruction, its words as text) in order, comments and continued lines resolved."""
    text = re.sub(r"^\s*#.*\n", "", (ROOT / "Containerfile").read_text(), flags=re.M)
    whole = [line for line in text.replace("\\\n", " ").splitlines() if line.strip()]
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in whole]


def of(lines, name):
    return [words for instruction, words in lines if instruction == name]


def test_it_has_only_known_instructions_and_begins_with_a_slim_python_that_is_new_enough(lines):
    known = {"FROM", "ENV", "WORKDIR", "COPY", "RUN", "USER", "EXPOSE", "HEALTHCHECK"}
    assert {instruction for instruction, _ in lines} <= known | {"ENTRYPOINT", "CMD"}
    assert lines[0][0] == "FROM"
    version = re.fullmatch(r"python:3\.(\d+)-slim", lines[0][1])[1]
    assert int(version) >= int(re.fullmatch(r">=3\.(\d+)", PROJECT["requires-python"])[1])


def test_files_that_are_copied_exist_and_are_in_the_context(lines):
    sources = [word for words in of(lines, "COPY") for word in words.split()[:-1]]
    needed = {"pyproject.toml", "src", PROJECT["readme"], *PROJECT["license-files"]}
    assert {name for name in needed if not name.startswith("src/")} <= set(sources)
    kept = re.findall(r"^!(.+)$", (ROOT / ".containerignore").read_text(), re.M)
    assert sorted(kept) == sorted(sources)
    assert all((ROOT / source).exists() for source in sources)


def test_extras_that_are_installed_exist(lines):
    (command,) = [words for words in of(lines, "RUN") if words.startswith("pip")]
    words = shlex.split(command)
    (package,) = [word for word in words if word.startswith(".[")]
    assert set(package[2:-1].split(",")) == {"serve", "cli"}
    assert set(package[2:-1].split(",")) <= set(PROJECT["optional-dependencies"])
    assert words[words.index("-c") + 1] == "constraints.txt"


def test_the_service_begins_as_a_user_without_rights_after_the_installation(lines):
    kinds = [instruction for instruction, _ in lines]
    (user,) = of(lines, "USER")
    assert int(user) >= 1000
    assert kinds.index("USER") > max(i for i, kind in enumerate(kinds) if kind == "RUN")
    assert any(f"--uid {user}" in words for words in of(lines, "RUN"))


def test_the_command_is_one_of_ours_with_its_options(lines):
    script, command, *words = json.loads(of(lines, "ENTRYPOINT")[0])
    assert script in PROJECT["scripts"]
    serve = typer.main.get_command(app).commands[command]
    found = serve.make_context(command, [*words, *json.loads(of(lines, "CMD")[0])]).params
    assert str(found["port"]) == of(lines, "EXPOSE")[0]
    with pytest.raises(ValueError, match=TOKEN):  # nobody serves others without a token
        Settings(host=found["host"])
    assert Settings(host=found["host"], token="secret").host == "0.0.0.0"


def test_the_health_check_asks_a_path_that_needs_no_token_and_fails_with_it(lines):
    options, _, command = of(lines, "HEALTHCHECK")[0].partition("CMD ")
    assert "--start-period" in options
    python, dash, code = json.loads(command)
    assert (python, dash) == ("python", "-c")
    port, path = re.search(r"127\.0\.0\.1:(\d+)(/\w+)", code).groups()
    assert port == of(lines, "EXPOSE")[0]
    assert path in OPEN

    class Answer(BaseHTTPRequestHandler):
        status = 200

        def do_GET(self):
            self.send_response(self.status)
            self.end_headers()

        def log_message(self, *words):
            pass

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        here = code.replace(f":{port}/", f":{server.server_port}/")
        for Answer.status, good in ((200, True), (503, False)):
            done = subprocess.run([sys.executable, "-c", here], stderr=subprocess.DEVNULL)
            assert (done.returncode == 0) is good
        server.shutdown()
