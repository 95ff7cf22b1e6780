"""OBO ontologies."""

import pytest

from tests.formats.dumps import imported, write

OBO = r"""format-version: 1.2
data-version: test
default-namespace: demo

[Term]
id: T:1
name: short thumb ! a comment
namespace: limbs
def: "A thumb, \"short\"\nas can be." [PMID:1] {x="y"}
synonym: "Brachy\, thumb" EXACT layperson []
synonym: "Digit" BROAD []
synonym: "Small thumb" RELATED [X:1]
xref: MSH:1
is_a: T:0 ! root

[Typedef]
id: part_of
name: part of

[Term]
id: T:2
name: gone
is_obsolete: true

[Term]
id: T:3
name: plain
"""


def test_terms(tmp_path):
    report, kb = imported(write(tmp_path / "o.obo.gz", OBO), "obo")
    assert kb["T:1"] == {
        "id": "T:1", "title": "short thumb", "aliases": ["Brachy, thumb", "Small thumb"],
        "description": 'A thumb, "short"\nas can be.', "types": ["limbs"],
    }  # fmt: skip
    assert list(kb) == ["T:1", "T:3"]
    assert report.left_out == {"stanzas of the kind Typedef": 1, "obsolete terms": 1}


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("id: T:3\n", "", "has no id"),
        ("name: plain\n", "", "the title is empty"),
        ("name: plain", "name: plain\nsynonym: none EXACT", "no quoted value"),
        ("name: plain", "name: pl\udcffain", "not UTF-8"),
    ],
)
def test_bad_terms(tmp_path, old, new, problem):
    data = OBO.replace(old, new).encode("utf8", "surrogateescape")
    source = write(tmp_path / "o.obo", data)
    with pytest.raises(ValueError, match=f"o.obo, line [0-9]+: .*{problem}"):
        imported(source, "obo")
    report, kb = imported(source, "obo", on_error="skip")
    assert "T:1" in kb
    assert sum(report.problems.values()) >= 1


def test_other_files(tmp_path):
    with pytest.raises(ValueError, match=r"no \[Term\] stanzas"):
        imported(write(tmp_path / "o.obo", "hello"), "obo")
