import re

from spacy_xel.mentions.same_name import cluster_mentions, group_by_name, longer_names
from spacy_xel.types import Query


def mentions(text):
    """Return the [marked] mentions of a text."""
    plain = re.sub(r"[{}]", "", text)
    queries, removed = [], 0
    for match in re.finditer(r"{(.*?)}", text):
        start = match.start() - removed
        queries.append(Query(plain, start, start + len(match[1])))
        removed += 2
    return queries


def test_same_names():
    text = "{Acme  Corp} and {ACME Corp}, {atrial fibrillation} ({AF}), {flutter}, {AF}"
    assert group_by_name(mentions(text)) == [0, 0, 1, 1, 2, 1]
    assert group_by_name([]) == []


def test_longer_names():
    names = ["Smith", "John Smith", "smithy", "Big John Smith"]
    assert longer_names(names) == [[1, 3], [3], [], []]


def test_clusters():
    text = "{John Smith} met {Jones}; {Smith} left. {acute renal failure} is {renal failure}."
    assert cluster_mentions(mentions(text)) == [0, 1, 0, 2, 3]


def test_a_short_name_of_two_is_of_neither():
    assert cluster_mentions(mentions("{John Smith}, {Mary Smith}, {Smith}")) == [0, 1, 2]


def test_chains_of_longer_names_and_order():
    assert cluster_mentions(mentions("{Smith} {Dr John Smith}")) == [0, 0]
    assert cluster_mentions(mentions("{Ring Road} {Road} {Outer Ring Road}")) == [0, 1, 0]


def test_labels_keep_things_apart():
    queries = mentions("{Paris Hilton} in {Hilton} and {Paris Hilton}")
    assert cluster_mentions(queries, ["PER", "ORG", "PER"]) == [0, 1, 0]
    assert cluster_mentions(queries, ["PER", "PER", "PER"]) == [0, 0, 0]
    assert cluster_mentions(queries, ["PER", "PER", "FAC"]) == [0, 0, 1]


def test_many_mentions():
    text = " ".join(f"{{Name Number{i % 3000}}}" for i in range(10_000))
    assert len(set(cluster_mentions(mentions(text)))) == 3000


def test_odd_mentions():
    empty = Query("a  b", 1, 3)
    assert cluster_mentions([empty, empty]) == [0, 0]
