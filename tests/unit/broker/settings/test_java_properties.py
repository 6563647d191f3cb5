"""Java's .properties syntax."""

from __future__ import annotations

import pytest

from holdfast.broker.settings import PropertiesError, read_properties

CASES: list[tuple[str, list[tuple[str, str]]]] = [
    ("a=b", [("a", "b")]),
    ("a : b", [("a", "b")]),
    ("  a\tb c ", [("a", "b c ")]),
    ("a", [("a", "")]),
    ("a==b", [("a", "=b")]),
    ("# one\n! two\n\n \t\na=b#c", [("a", "b#c")]),
    ("a=b,\\\n   c\nd=e", [("a", "b,c"), ("d", "e")]),
    ("a=b\\\\\nc=d", [("a", "b\\"), ("c", "d")]),
    ("a=\\\n# no comment", [("a", "# no comment")]),
    ("a=b\\", [("a", "b")]),
    ("a\\=b\\:c\\ d=e", [("a=b:c d", "e")]),
    ("a=\\t\\n\\u00e9\\q", [("a", "\t\néq")]),
    ("a=C:\\\\logs", [("a", "C:\\logs")]),
    ("a=1\r\nb=2\rc=3", [("a", "1"), ("b", "2"), ("c", "3")]),
    ("a=1\na=2", [("a", "1"), ("a", "2")]),
]


@pytest.mark.parametrize(("text", "pairs"), CASES)
def test_a_file_is_read_as_java_reads_it(text: str, pairs: list[tuple[str, str]]) -> None:
    assert [(one.name, one.value) for one in read_properties(text)] == pairs


def test_an_entry_has_its_first_line() -> None:
    assert [one.line for one in read_properties("# x\na=1,\\\n2\n\nb=3")] == [2, 5]


def test_a_wrong_escape_names_its_line() -> None:
    with pytest.raises(PropertiesError, match="line 2") as caught:
        read_properties("a=1\nb=\\u12g4")
    assert (caught.value.line, caught.value.reason) == (2, "\\u needs four hexadecimal digits")
