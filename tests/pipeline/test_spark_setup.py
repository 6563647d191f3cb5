"""Java and jars: found, checked, and missed in words that say what to do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.pipeline import PipelineError
from holdfast.pipeline.spark import jars, java
from holdfast.pipeline.spark.trust import PASSWORD, write_trust_store


def fake_java(home: Path, version: str) -> Path:
    script = home / "bin" / "java"
    script.parent.mkdir(parents=True)
    script.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    script.chmod(0o755)
    return home


def test_a_java_that_is_too_old_or_too_new_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = fake_java(tmp_path / "old", "11.0.2"), fake_java(tmp_path / "new", "25")
    right = fake_java(tmp_path / "right" / "java" / "usr" / "lib" / "jvm" / "it", "17.0.15")
    monkeypatch.setenv("JAVA_HOME", str(old))
    monkeypatch.setenv("PATH", str(new / "bin"))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "right"))
    assert java.java_home() == right


def test_without_java_it_says_what_was_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", "11.0.2")))
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(java, "MACHINES", tmp_path / "none")
    with pytest.raises(PipelineError, match=r"old: it is Java 11") as caught:
        java.java_home()
    assert "openjdk-17-jre-headless" in str(caught.value.hint)


def test_missing_jars_are_named_with_the_way_to_have_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(jars.FOLDER_VARIABLE, str(tmp_path))
    (tmp_path / jars.JARS[0].file).write_bytes(b"half a jar")
    with pytest.raises(PipelineError, match=jars.JARS[0].name) as caught:
        jars.paths()
    assert "make spark" in str(caught.value.hint)


def test_a_jar_with_another_content_is_refused(tmp_path: Path) -> None:
    for jar in jars.JARS:
        (tmp_path / jar.file).write_bytes(bytes(jar.size))
    assert jars.missing(tmp_path) == []
    with pytest.raises(PipelineError, match="is not the expected file"):
        jars.verify(tmp_path)


def test_the_jars_of_this_environment_are_the_ones_we_know() -> None:
    if jars.missing(jars.folder()):
        pytest.skip("Spark's jars are not here: make spark")
    jars.verify(jars.folder())


@pytest.mark.slow
def test_java_reads_the_trust_store(tmp_path: Path) -> None:
    try:
        keytool = java.java_home() / "bin" / "keytool"
    except PipelineError as error:
        pytest.skip(error.message)
    store = tmp_path / "trust.jks"
    write_trust_store(store)
    command = [str(keytool), "-list", "-keystore", str(store), "-storepass", PASSWORD]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "trustedCertEntry" in done.stdout


def test_without_pyspark_the_extra_is_named(tmp_path: Path) -> None:
    code = (
        "from importlib import util\n"
        "found = util.find_spec\n"
        "util.find_spec = lambda name, *more: None if name == 'pyspark' else found(name, *more)\n"
        "from holdfast.cli import main\n"
        "main(['ingest', '-b', 'a:1', '--topic', 't', '--table', 'x'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (64, "")
    assert "pip install 'holdfast[spark]'" in done.stderr
