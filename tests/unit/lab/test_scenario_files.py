"""Parsing scenario files, and the errors of malformed ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.lab.scenarios.catalogue import UnknownScenarioError, find, ids, load, paths
from holdfast.lab.scenarios.scenario import ScenarioError, parse, suggestion

SCENARIO = """\
# A record is kept.
#
# It could be lost, if this were another scenario (KIP-101).

variant before truncation=high-watermark min.insync.replicas=1
variant after

# The first step
# has two lines of narration.
cluster brokers=(A,B)
produce A acks=all
  m0 m1
  m2
settle
---- before
one line
  an indented line
---- after
another line

# A step with nothing to say.
wait 100

verdict
----
the same for both
"""


def error_of(text: str) -> tuple[str, str]:
    """The error of a text that cannot be parsed, and its hint."""
    with pytest.raises(ScenarioError) as caught:
        parse(text, "some.scenario")
    return str(caught.value), caught.value.hint


def test_the_header_gives_the_title_and_what_could_go_wrong() -> None:
    scenario = parse(SCENARIO, "some/where/a_record_is_kept.scenario")
    assert scenario.id == "a-record-is-kept"
    assert scenario.title == "A record is kept."
    assert scenario.header == "It could be lost, if this were another scenario (KIP-101)."


def test_variants_carry_their_options_under_normal_names() -> None:
    scenario = parse(SCENARIO, "s")
    assert [one.name for one in scenario.variants] == ["before", "after"]
    assert scenario.variant("before").options == {
        "truncation": "high-watermark",
        "min_insync_replicas": "1",
    }
    assert scenario.variant("after").options == {}
    assert [one.line for one in scenario.variants] == [5, 6]
    with pytest.raises(KeyError):
        scenario.variant("default")


def test_without_variant_lines_there_is_one_called_default() -> None:
    scenario = parse("# Claim.\n\nverdict\n", "s")
    assert [(one.name, dict(one.options)) for one in scenario.variants] == [("default", {})]


def test_a_paragraph_is_one_step() -> None:
    scenario = parse(SCENARIO, "s")
    assert [(one.line, one.rule_line, one.last_line) for one in scenario.steps] == [
        (8, 15, 19),
        (21, 0, 22),
        (24, 25, 26),
    ]
    assert [one.narration for one in scenario.steps] == [
        "The first step has two lines of narration.",
        "A step with nothing to say.",
        "",
    ]


def test_commands_have_words_options_and_input() -> None:
    cluster, produce, settle = parse(SCENARIO, "s").steps[0].commands
    assert (cluster.name, cluster.words, cluster.options) == ("cluster", (), {"brokers": "(A,B)"})
    assert (produce.name, produce.words, produce.options) == ("produce", ("A",), {"acks": "all"})
    assert produce.data == ("m0 m1", "m2")
    assert produce.text == "produce A acks=all"
    assert settle.data == ()
    assert [one.line for one in (cluster, produce, settle)] == [10, 11, 14]


def test_each_variant_is_held_to_its_own_block_or_to_the_bare_one() -> None:
    first, silent, last = parse(SCENARIO, "s").steps
    assert first.expects("before") == ("one line", "  an indented line")
    assert first.expects("after") == ("another line",)
    assert silent.expects("before") == silent.expects("after") == ()
    assert last.expects("before") == last.expects("after") == ("the same for both",)


def test_a_variants_own_block_overrides_the_bare_one() -> None:
    text = "# C.\n\nvariant a\nvariant b\n\nverdict\n---- a\nmine\n----\nshared\n"
    (step,) = parse(text, "s").steps
    assert (step.expects("a"), step.expects("b")) == (("mine",), ("shared",))


def test_narration_without_commands_is_a_step() -> None:
    scenario = parse("# C.\n\n# Only words.\n\nverdict\n", "s")
    assert [one.narration for one in scenario.steps] == ["Only words.", ""]
    assert scenario.steps[0].commands == ()


@pytest.mark.parametrize("ending", ["\r\n", "\n"])
def test_line_endings_and_indentation_do_not_matter(ending: str) -> None:
    text = SCENARIO.replace("  m0 m1", "\tm0\tm1").replace("\n", ending)
    scenario = parse(text, "s")
    assert scenario.steps[0].commands[1].data == ("m0\tm1", "m2")
    assert scenario.steps[0].expects("before") == ("one line", "  an indented line")
    assert scenario.steps == parse(text + ending * 3, "s").steps


def test_lines_that_only_look_empty_part_paragraphs() -> None:
    assert len(parse("# C.\n \t\nwait 1\n   \nverdict\n", "s").steps) == 2


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        ("", "1: the file is empty", "begin with"),
        ("\n \n\t\n", "1: the file is empty", "begin with"),
        ("wait 1\n", "1: the file must open with a '#' header", "say what could go wrong"),
        ("\n# C.\nwait 1\n", "2: the file must open with a '#' header", "what could"),
        ("#\n# C.\n\nverdict\n", "1: the header's first line is empty", "begin with"),
        ("# C.\n\n  m0\n", "3: input without a command above it", "margin"),
        ("# C.\n\n# Words.\n\tm0\n", "4: input without a command above it", "margin"),
        ("# C.\n\nwait =5\n", "3: '=5' is not key=value", "no spaces"),
        ("# C.\n\nproduce A acks=\n", "3: 'acks=' is not key=value", "no spaces"),
        ("# C.\n\nproduce A acks=1 acks=all\n", "3: 'acks' is given twice", "once"),
        ("# C.\n\ncluster min.a-b=1 min_a_b=2\n", "3: 'min_a_b' is given twice", "once"),
        ("# C.\n\nvariant\n", "3: a variant has one name", "usage: variant NAME"),
        ("# C.\n\nvariant a b\n", "3: a variant has one name", "usage: variant NAME"),
        ("# C.\n\nvariant a\n  input\n", "3: a variant has one name", "usage: variant NAME"),
        ("# C.\n\nvariant a\n\nvariant a\n", "5: a second variant is called 'a'", "another"),
        ("# C.\n\nwait 1\n----\na\n----\nb\n", "6: a second block for 'all'", "one block"),
        (
            "# C.\n\nvariant a\n\nwait 1\n---- a\nx\n---- a\ny\n",
            "8: a second block for 'a'",
            "one block",
        ),
        (
            "# C.\n\nvariant before\n\nwait 1\n----\nx\n---- befor\ny\n",
            "8: no variant is called 'befor'",
            "did you mean 'before'?",
        ),
        ("# C.\n\nwait 1\n---- xyz\n", "4: no variant is called 'xyz'", "known: default"),
        ("# C.\n\nwait 1\n----  a  b\n", "4: no variant is called 'a  b'", "known: default"),
        ("# C.\n\nwait 1\n\n----\nlate\n", "5: a block without a command", "empty line"),
        ("# C.\n\nvariant a\n----\nx\n", "4: a block without a command", "empty line"),
        ("# C.\n\n# Words.\n----\nx\n", "4: a block without a command", "empty line"),
    ],
)
def test_a_malformed_file_is_refused_with_its_line_and_a_hint(
    text: str, said: str, hint: str
) -> None:
    message, given = error_of(text)
    assert message.startswith(f"some.scenario:{said}")
    assert hint in given


def test_the_nearest_word_is_suggested_and_nothing_far_away() -> None:
    assert suggestion("setle", ["settle", "wait"]) == "did you mean 'settle'?"
    assert suggestion("qqqq", ["settle", "wait"]) == ""


def test_every_shipped_file_is_found_by_its_id_and_has_one_of_its_own() -> None:
    names = ids()
    assert len(names) == len(set(names)) == len(paths())
    for name in names:
        assert load(name).id == name
        assert find(name.replace("-", "_")) == find(name)


def test_an_unknown_id_names_the_nearest_one() -> None:
    with pytest.raises(UnknownScenarioError, match="no scenario is called 'loss-acks-2'") as caught:
        load("loss-acks-2")
    assert caught.value.hint.startswith("did you mean 'loss-acks-")


def test_a_file_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    path = tmp_path / "marked.scenario"
    path.write_text("# Claim.\n\nverdict\n", encoding="utf-8-sig")
    assert load(str(path)).title == "Claim."


def test_odd_bytes_are_refused_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "odd.scenario"
    path.write_bytes(b"# Claim.\n\nwait 1\n# caf\xe9\n")
    with pytest.raises(ScenarioError, match=r"odd\.scenario:4: not UTF-8 text") as caught:
        load(str(path))
    assert caught.value.hint == "save it as UTF-8"


def test_a_missing_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        load(str(tmp_path / "nowhere.scenario"))
