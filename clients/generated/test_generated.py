"""Clients that generators make of openapi.yaml compile, and lose nothing of what the server answers but digits: numbers are
compared as floats, because common JSON parsers round those of more than 15 digits."""

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
CONTRACT = HERE.parent.parent / "serve" / "openapi.yaml"
OAPI_CODEGEN = "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2"
OPENAPI_GENERATOR = "org.openapitools:openapi-generator-cli:7.17.0"
TYPESCRIPT = ["typescript@5.9.3", "@types/node@20.19.25"]

USER, OTHER = {"user_id": "u000001"}, {"user_id": "u000002", "device_id": "d000001"}


def questions(at: int) -> list[dict[str, Any]]:
    return [
        {"features": ["spent", "mean"], "entities": [USER, OTHER, {"user_id": "nobody"}], "at": at},
        {"features": ["payments"], "entities": [{"user_id": "nobody"}], "at": at},  # a lifetime, which goes on for others
        {"service": "risk", "entities": [USER], "at": at},
        {"features": ["merchants", "by_status"], "entities": [USER], "at": at},
        {"features": ["seen_device"], "members": ["d000001", "none"], "entities": [USER], "at": at},
        {"features": ["seen_device"], "members": {"seen_device": ["d000002"]}, "entities": [OTHER], "at": at},
        {
            "features": ["hour", "last_status"],
            "entities": [USER],
            "pending": [{"stream": "transaction", "event": {
                "event_id": "new", "type": "transaction", "timestamp": at, "user_id": "u000001", "amount": 1.5, "status": "approved"}}],
        },
        {"features": ["hour"], "entities": [USER], "at": at, "wait_for": {"topic": "transactions", "partition": 0, "offset": 0}},
    ]


def run(*command: Any, **more: Any) -> str:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **more)
    assert done.returncode == 0, f"{command}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """weir demo, once its history is applied."""
    binary = os.environ["WEIR_BINARY"]
    demo = subprocess.Popen(
        [binary, "demo", "--days", "3", "--features", HERE / "features.yaml", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert demo.stdout
    url = ""
    for line in demo.stdout:
        if found := re.search(r"Open (http://\S+)", line):
            url = found[1]
        if "applied in" in line:
            break
    yield url
    demo.kill()
    demo.wait()


@pytest.fixture(scope="module")
def asked(server: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, list[Any]]:
    """The server, the questions, and its answers as they are on the wire."""

    def get(path: str, body: dict[str, Any] | None = None) -> Any:
        request = urllib.request.Request(server + path, json.dumps(body).encode() if body else None, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as response:
            return json.load(response)

    now = get("/v1/query", {"features": ["hour"], "entities": [USER]})["at"]
    # A tile that the window ends in is whole, and counts for as long as it goes on: tiles of a day end at midnight UTC,
    # and of the day before the last one no event is still to come.
    asked = questions(now - now % 86400_000 - 36 * 3600_000)
    file = tmp_path_factory.mktemp("questions") / "questions.ndjson"
    file.write_text("".join(json.dumps(q) + "\n" for q in asked))
    return server, file, [get("/v1/query", q) for q in asked] + [get("/v1/features"), get("/readyz")]


def whole(value: Any) -> Any:
    """The value without absent properties, which some classes hold as null or as an empty list, with floats for numbers,
    and without the end of lifetimes, which is the present."""
    if isinstance(value, dict):
        lifetime = "to" in value and value.get("from") is None
        return {k: whole(v) for k, v in value.items() if v not in (None, []) and not (lifetime and k == "to")}
    if isinstance(value, list):
        return [whole(v) for v in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def check(printed: str, asked: tuple[str, Path, list[Any]]) -> None:
    got = [json.loads(line) for line in printed.splitlines()]
    assert len(got) == len(asked[2])
    for one, want in zip(got, asked[2]):
        assert flat(whole(one)) == flat(whole(want))


def flat(value: Any, path: str = "") -> dict[str, Any]:
    """The leaves of a value by their paths, which makes differences readable."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    leaves = {k: v for key, part in parts for k, v in flat(part, f"{path}/{key}").items()}
    return leaves or {path: value}


def generate(language: str, folder: Path, *options: str) -> None:
    repository = Path(os.environ.get("MAVEN_REPOSITORY", Path.home() / ".m2" / "repository"))
    group, name, version = OPENAPI_GENERATOR.split(":")
    jar = repository / group.replace(".", "/") / name / version / f"{name}-{version}.jar"
    if not jar.exists():
        run("mvn", "--quiet", "--batch-mode", "dependency:get", f"-Dartifact={OPENAPI_GENERATOR}", "-Dtransitive=false")
    run("java", "-jar", jar, "generate", "-i", CONTRACT, "-g", language, "-o", folder, *options)


def test_go(asked: tuple[str, Path, list[Any]], tmp_path: Path) -> None:
    (tmp_path / "api").mkdir()
    environment = {**os.environ, "GOFLAGS": "-mod=mod", "GOBIN": str(tmp_path / "bin")}
    run("go", "install", OAPI_CODEGEN, env=environment, cwd=tmp_path)
    run(tmp_path / "bin" / "oapi-codegen", "-generate", "types,client", "-package", "api", "-o", tmp_path / "api" / "api.go", CONTRACT)
    (tmp_path / "main.go").write_text((HERE / "ask.go").read_text().replace("//go:build ignore\n", ""))
    run("go", "mod", "init", "generated", cwd=tmp_path)
    run("go", "mod", "tidy", cwd=tmp_path)
    check(run("go", "run", ".", asked[0], asked[1], cwd=tmp_path), asked)


def test_java(asked: tuple[str, Path, list[Any]], tmp_path: Path) -> None:
    generate("java", tmp_path, "--library", "native")
    shutil.copy(HERE / "Ask.java", tmp_path / "src" / "main" / "java")
    classpath = tmp_path / "classpath"
    run("mvn", "--quiet", "--batch-mode", "compile", "dependency:build-classpath", f"-Dmdep.outputFile={classpath}", cwd=tmp_path)
    check(run("java", "-cp", f"{tmp_path / 'target' / 'classes'}{os.pathsep}{classpath.read_text()}", "Ask", asked[0], asked[1]), asked)


def test_python(asked: tuple[str, Path, list[Any]], tmp_path: Path) -> None:
    generate("python", tmp_path, "--package-name", "weir_api")
    run(sys.executable, "-m", "venv", "--system-site-packages", tmp_path / "venv")
    python = tmp_path / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--requirement", tmp_path / "requirements.txt")
    check(run(python, HERE / "ask.py", asked[0], asked[1], env={**os.environ, "PYTHONPATH": str(tmp_path)}), asked)


def test_typescript(asked: tuple[str, Path, list[Any]], tmp_path: Path) -> None:
    generate("typescript-fetch", tmp_path / "api", "--additional-properties", "importFileExtension=.js")
    shutil.copy(HERE / "ask.ts", tmp_path)
    (tmp_path / "package.json").write_text('{"private": true, "type": "module"}')
    run("npm", "install", "--silent", "--no-audit", "--no-fund", *TYPESCRIPT, cwd=tmp_path)
    run("node", "node_modules/typescript/bin/tsc", "--strict", "--target", "es2022", "--module", "nodenext", "--outDir", "out", "ask.ts", cwd=tmp_path)
    check(run("node", "out/ask.js", asked[0], asked[1], cwd=tmp_path), asked)
