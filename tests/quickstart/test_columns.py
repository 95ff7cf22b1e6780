"""What the columns of varied tables are taken for."""

import pytest

from spacy_xel.quickstart.survey import survey
from tests.formats.dumps import write

PLAIN = {"id": "code", "title": "name"}


@pytest.mark.parametrize(
    ("name", "content", "columns", "separators"),
    [
        ("t.csv", "code,name\nA1,bolt\nA2,nut\n", PLAIN, {}),
        ("semicolons.csv", "code;name\nA1;bolt, long\nA2;nut\n", PLAIN, {}),
        ("bom.csv", "\ufeffcode,name\nA1,bolt\nA2,nut\n", PLAIN, {}),
        ("quotes.tsv", 'code\tname\nA1\t"bolt"\nA2\t"a ""nut"""\n', PLAIN, {}),
        ("packed.csv.gz", "code,name\nA1,bolt\nA2,nut\n", PLAIN, {}),
        (
            "bars.csv",
            "ID,Product Name,Synonyms,Definition,Category,Count\n"
            "1,bolt,screw|pin,a long thing,metal,3\n2,nut,,a round thing,metal,9\n",
            {"id": "ID", "title": "Product Name", "aliases": "Synonyms",
             "description": "Definition", "types": "Category", "prior": "Count"},
            {"aliases": "|", "types": "|"},
        ),
        (
            "semicolons_within.csv", "id,label,aka\nx1,bolt,screw; pin\nx2,nut,\n",
            {"id": "id", "title": "label", "aliases": "aka"}, {"aliases": ";"},
        ),
        (
            "commas_within.csv", 'id,label,aliases\nx1,bolt,"screw,pin"\nx2,nut,\n',
            {"id": "id", "title": "label", "aliases": "aliases"}, {"aliases": ","},
        ),
        ("comma_in_name.csv", 'id,label,synonym\nx1,Paris,"Paris, Texas"\nx2,nut,\n',
         {"id": "id", "title": "label", "aliases": "synonym"}, {"aliases": "|"}),
        ("scripts.csv", "code,名前,name\n1,東京,Москва\n2,大阪,Ἀθῆναι\n", PLAIN, {}),
        ("headless.csv", "A1,bolt\nA2,nut\nA3,pin\n", {"id": "1", "title": "2"}, {}),
        ("names.txt", "bolt\nnut, round\npin\n", {"id": "#", "title": "1"}, {}),
        ("names.csv", "name\nbolt\nnut\n", {"id": "#", "title": "name"}, {}),
        # Numbers under a name that says nothing are not used; a year is no prior.
        ("numbers.csv", "name,year\nbolt,1990\nnut,1990\n", {"id": "#", "title": "name"}, {}),
        # A row per name: ids repeat.
        ("long.csv", "id,name\n1,bolt\n1,screw\n2,nut\n2,round nut\n",
         {"id": "id", "title": "name"}, {}),
        # Numbers, prices and dates are no ids by themselves; codes are.
        ("prices.csv", "product,price\nbolt,19.99\nnut,4.50\n",
         {"id": "#", "title": "product"}, {}),
        ("areas.csv", "country,code,area\nGermany,DE,357022\nFrance,FR,551695\n",
         {"id": "code", "title": "country"}, {}),
        ("amounts.csv", 'name,paid,made,size\nbolt,"€1,500.00",2020-01-02,5 m\n'
         "nut,€7,2021-02-03,7 m\n", {"id": "#", "title": "name"}, {}),
        ("codes.csv", "name,x\nbolt,HP:01\nnut,HP:02\n", {"id": "x", "title": "name"}, {}),
        ("weights.csv", "id,name,weight\n1,bolt,3\n2,nut,4\n", {"id": "id", "title": "name"}, {}),
        # Headers as spreadsheets write them.
        ("trailing.csv", "id,name,,\n1,bolt,,\n2,nut,,\n", {"id": "id", "title": "name"}, {}),
        ("twice.csv", "id,name,name\n1,bolt,b\n2,nut,n\n", {"id": "id", "title": "name"}, {}),
        ("years.csv", "id,name,2019\n1,bolt,7\n2,nut,8\n", {"id": "id", "title": "name"}, {}),
        ("sep.csv", "sep=;\r\nid;name\r\n1;bolt, long\r\n2;nut, round\r\n",
         {"id": "id", "title": "name"}, {}),
        ("empty_rows.csv", ",\nid,name\n1,bolt\n,\n2,nut\n", {"id": "id", "title": "name"}, {}),
        ("ids_with_spaces.csv", "id,name\nthe big bolt,bolt\nthe small nut,nut\n",
         {"id": "id", "title": "name"}, {}),
        ("german.csv", 'id,Bezeichnung,Synonyme\n1,Schraube,"Bolzen, Stift"\n2,Mutter,\n',
         {"id": "id", "title": "Bezeichnung", "aliases": "Synonyme"}, {"aliases": ","}),
        # Bars in each row, but the header says that commas separate.
        ("bars_within.csv", "id,name,aliases\n1,bolt,a|b\n2,nut,c|d\n3,a,b,c|d\n",
         {"id": "id", "title": "name", "aliases": "aliases"}, {"aliases": "|"}),
    ],
)  # fmt: skip
def test_guess(tmp_path, name, content, columns, separators):
    found = survey(write(tmp_path / name, content))
    assert found.kind == "csv"
    assert dict(found.options.columns) == columns
    assert dict(found.options.separators) == separators


def test_contents_alone(tmp_path):
    """Without a header: codes are ids, long texts descriptions, few values types."""
    rows = "".join(
        f"P{i};thing {i};one thing that is used for many other things, no {i};"
        f"{('tool', 'part')[i % 2]};thingy {i}|gadget {i}\n"
        for i in range(40)
    )
    found = survey(write(tmp_path / "t.csv", rows))
    assert not found.options.header
    expected = {"id": "1", "title": "2", "description": "3", "types": "4", "aliases": "5"}
    assert dict(found.options.columns) == expected
    assert (found.rows, found.names) == (40, 120)


def test_what_the_user_says(tmp_path):
    table = write(tmp_path / "t.csv", "code,name,long name,notes\nA,b,c,d\nE,f,g,h\n")
    columns = {"id": "#", "title": "long name", "aliases": "name", "description": "-"}
    found = survey(table, columns=columns, separators={"aliases": "/"})
    assert dict(found.options.columns) == {"id": "#", "title": "long name", "aliases": "name"}
    assert found.options.separators["aliases"] == "/"
    assert not survey(table, header=False).options.header
    with pytest.raises(ValueError, match=r"no column 'x'.*'code', 'name'"):
        survey(table, columns={"title": "x"})
    with pytest.raises(ValueError, match="nothing to fill"):
        survey(table, columns={"heading": "name"})
    with pytest.raises(ValueError, match="--column title=COLUMN"):
        survey(table, columns={"title": "-"})


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is empty"),
        (b"\xef\xbb\xbf \n", "is empty"),
        (b"PK\x03\x04....", "spreadsheet"),
        (b"ab\0\1\2", "binary data"),
        ("id,name\n1,ü\n".encode("utf-16"), "UTF-16"),
        ("id,name\n1,ü\n".encode("latin1"), "not in UTF-8"),
        (b'[{"id": "1"}]', "JSON array"),
        (b"<html>", "XML or HTML"),
        (b"id,name\n", "only a header"),
        (b"1,2\n3,4\n", "--column title=COLUMN"),
        (b"\x1f\x8bxxxx", "damaged"),
        (b"id,name\r1,bolt\r2,nut\r", "line ends of old Macs"),
    ],
)
def test_wrong_files(tmp_path, content, problem):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=problem):
        survey(path)


def test_missing_file_and_json_lines(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        survey(tmp_path / "x.csv")
    lines = write(tmp_path / "kb.txt", '{"id": "1", "title": "a", "aliases": ["b"]}\n' * 3)
    found = survey(lines)
    assert (found.kind, found.rows, found.names) == ("jsonl", 3, 6)
    with pytest.raises(ValueError, match="jsonl does not take --column"):
        survey(lines, columns={"title": "x"})
