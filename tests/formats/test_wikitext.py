"""Wikitext as plain text with links."""

import gzip
import json
import re
import time

import pytest

from spacy_xel.formats.wiki_titles import Site, clean_title, page_kind
from spacy_xel.formats.wikitext import parse_wikitext
from spacy_xel.jsonlines import BadLine

pytest.importorskip("mwparserfromhell", reason="needs the extra 'dumps'")


def links(wikitext, site=None):
    parsed = parse_wikitext(wikitext, site)
    for link in parsed.links:
        assert parsed.text[link.start : link.end] == link.surface
    return parsed.text, [(link.target, link.surface) for link in parsed.links]


@pytest.mark.parametrize(
    ("wikitext", "text", "expected"),
    [
        ("A [[town]].", "A town.", [("Town", "town")]),
        ("A [[town|big place]].", "A big place.", [("Town", "big place")]),
        ("Two [[town]]s and", "Two towns and", [("Town", "towns")]),
        ("[[town]]S", "townS", [("Town", "town")]),
        ("[[東京]]都", "東京都", [("東京", "東京")]),
        ("[[town|'''big''' ''one'']]", "big one", [("Town", "big one")]),
        ("[[town#History|past]]", "past", [("Town", "past")]),
        ("[[#History|past]]", "past", []),
        ("[[a_b]] &amp; [[c%20d|x]]", "a_b & x", [("A b", "a_b"), ("C d", "x")]),
        ("x [[town| ]] y", "x y", []),
        ("[[2001: A Film|film]]", "film", [("2001: A Film", "film")]),
        ("[[fr:Ville]] [[wikt:town|word]]", "fr:Ville word", []),
        ("[[:Category:Towns|all]]", "all", []),
        ("[[Category:Towns|T]]End", "End", []),
        ("It ({{lang|fr|''la [[ville]]''}}) is", "It (la ville) is", [("Ville", "ville")]),
        ("It ({{IPA|x}}) is {{convert|5|km}}", "It is 5 km", []),
        ("One<ref>see [[note]]</ref> two<!-- [[c]] --> three", "One two three", []),
        ("Go [http://x.org to [[it]]] or [http://y.org]", "Go to it or ", [("It", "it")]),
        ("* one [[a]]\n* two", "one a\ntwo", [("A", "a")]),
        ("a\n\n\n== H ==\n\nb", "a\n\nH\n\nb", []),
        ("[[File:x.jpg|thumb|left|A [[cat]]|alt=no]]Text", "Text\n\nA cat", [("Cat", "cat")]),
        ("<gallery>\nx.jpg|A [[cat]]s\ny.jpg\n</gallery>T", "T\n\nA cats", [("Cat", "cats")]),
        ("T\n{|\n|-\n! h\n| [[c]] || d\n|}", "T\n\nh\n\nc\td", [("C", "c")]),
        ("<nowiki>[[no]]</nowiki> <math>[[x]]</math>", "[[no]] ", []),
        ("It''s' [[a]]", "Its' a", [("A", "a")]),
        ("[[a|{{nowrap|b c}}]]", "b c", [("A", "b c")]),
        ("unclosed [[a", "unclosed [[a", []),
        ("", "", []),
    ],
)
def test_links_and_text(wikitext, text, expected):
    found, found_links = links(wikitext)
    assert found_links == expected
    assert found.split() == text.split()


def test_links_without_a_place_are_counted():
    parsed = parse_wikitext("{{Box|home=[[a|b]]}}<ref>[[c]]</ref>[[File:x|d [[e]]]]")
    assert [(k.place, k.target, k.surface) for k in parsed.loose_links] == [
        ("template", "A", "b"), ("footnote", "C", "c"),
    ]  # fmt: skip
    assert parsed.templates == ["Box"]
    assert parsed.text.strip() == "d e"


def test_first_paragraph_is_prose():
    wikitext = "{{Box}}\n:''See [[x]].''\n\n[[File:a.jpg|thumb|b]]\n"
    wikitext += "'''It''' is ({{IPA|x}}) a [[y]].\nMore.\n\n==H=="
    assert parse_wikitext(wikitext).first_paragraph == "It is a y. More."
    assert parse_wikitext("== H ==\nText").first_paragraph == ""


def test_namespaces_of_the_wiki():
    site = Site()
    site.add_namespace("Datei", 6)
    site.add_namespace("Kategorie", 14)
    parsed = parse_wikitext("[[Datei:x.jpg|mini|Ein [[Hund]]]][[Kategorie:Tier]]", site)
    assert parsed.categories == ["Tier"]
    assert [link.target for link in parsed.links] == ["Hund"]


@pytest.mark.parametrize(
    ("title", "templates", "kind"),
    [
        ("Paris", ["Infobox"], "article"),
        ("Paris", ["disambig"], "disambiguation page"),
        ("Paris", ["Human name disambiguation"], "disambiguation page"),
        ("Paris", ["disambiguation needed"], "article"),
        ("Paris (disambiguation)", [], "disambiguation page"),
        ("Paris", ["Begriffsklärung"], "disambiguation page"),
        ("List of towns", [], "list"),
        ("Liste der Orte", [], "list"),
        ("Listeria", [], "article"),
    ],
)
def test_kinds_of_pages(title, templates, kind):
    assert page_kind(title, templates) == kind


def test_titles():
    assert clean_title(" new_york  city#x ") == "New york city"
    assert clean_title(":a&amp;b") == "A&b"


@pytest.mark.parametrize(
    "wikitext",
    ["{{a|" * 20000, "[[a|" * 20000, "<b>" * 20000, "\n{|" * 20000, "<!--" * 20000,
     "}}" * 20000 + "{{a|" * 20000, "[http://a " * 20000],
)  # fmt: skip
def test_markup_made_to_take_forever_is_refused(wikitext):
    start = time.monotonic()
    with pytest.raises(BadLine, match="never closed"):
        parse_wikitext(wikitext)
    assert time.monotonic() - start < 2


@pytest.mark.parametrize("depth", [50, 5000])
def test_deep_nesting(depth):
    parsed = parse_wikitext("x" + "{{a|" * depth + "}}" * depth)
    assert parsed.text.startswith("x")


@pytest.mark.slow
def test_every_link_of_real_articles(data):
    """Every "[[" of the raw text is accounted for, and all offsets are right."""
    total = placed = loose = other = comments = 0
    with gzip.open(data / "scale" / "enwiki_sample_wikitext.jsonl.gz", "rt") as file:
        for line in file:
            wikitext = json.loads(line).get("wikitext", "")
            parsed = parse_wikitext(wikitext)
            for link in parsed.links:
                assert parsed.text[link.start : link.end] == link.surface
                assert link.surface
            total += wikitext.count("[[")
            placed += len(parsed.links)
            loose += len(parsed.loose_links)
            other += sum(parsed.other_links.values())
            comments += sum(c.count("[[") for c in re.findall(r"<!--.*?-->", wikitext, re.DOTALL))
    assert total == placed + loose + other + comments == 32_374
    assert (placed, loose, other, comments) == (27_222, 2_981, 2_077, 94)


@pytest.mark.slow
def test_surfaces_of_real_articles_against_a_plain_search(data):
    """Links without markup in them come out as a regular expression finds them."""
    simple = re.compile(r"\[\[([^\[\]|{}<>'&#:_%]+)(?:\|([^\[\]|{}<>'&]+))?\]\]([a-z]*)")
    missing = found = 0
    with gzip.open(data / "scale" / "enwiki_sample_wikitext.jsonl.gz", "rt") as file:
        for line in file:
            wikitext = re.sub(r"<!--.*?-->", "", json.loads(line).get("wikitext", ""), flags=re.S)
            parsed = parse_wikitext(wikitext)
            known = {(k.target, k.surface) for k in [*parsed.links, *parsed.loose_links]}
            for target, label, trail in simple.findall(wikitext):
                pair = (clean_title(target), " ".join(((label or target) + trail).split()))
                found += 1
                missing += pair not in known
    assert found > 25_000
    assert missing == 0
