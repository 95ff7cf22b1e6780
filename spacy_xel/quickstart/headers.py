"""What columns of tables are usually called."""

import re

from spacy_xel.formats.table import ROW_NUMBER

# Names of columns, as they are with spaces and signs taken out.
_WORDS = {
    "id": "id ids identifier code key uri iri sku qid cui curie accession ean isbn gtin geonameid "
    "entityid conceptid kbid itemid wikidataid number no nr nummer kennung clave codigo",
    "title": "title name names label term heading preferredname preflabel preferredlabel entity "
    "concept mainname canonicalname fullname titel bezeichnung nom nombre titre nome product item",
    "aliases": "alias aliases synonym synonyms synonyme alternatenames alternativenames altnames "
    "altlabel altlabels alternatelabels alsoknownas aka akas othernames variants abbreviation "
    "abbreviations acronym acronyms alternatename alternativename othername sinonimos synonymes "
    "sinonimi synoniemen alternativnamen",
    "description": "description descriptions definition desc abstract summary comment comments "
    "note notes gloss scopenote beschreibung text details about descripcion descrizione",
    "types": "type types category categories class classes kind group genre semantictype "
    "entitytype feature tag tags typ kategorie tipo categoria",
    "prior": "prior count counts frequency freq popularity population views pageviews "
    "sitelinks citations sales inlinks occurrences mentions anzahl einwohner",
}
WORDS = {name: frozenset(words.split()) for name, words in _WORDS.items()}
# Ids by name alone, even where they repeat (tables with a row per name) or are missing.
PLAIN_IDS = WORDS["id"] - frozenset(
    ["code", "key", "number", "no", "nr", "nummer", "codigo", "clave"]
)

# Several values in a cell by name alone; besides these, all names that end in s.
LISTS = frozenset(
    ["aka", "alsoknownas", "synonyme", "sinonimi", "synoniemen", "alternativnamen", "kategorien"]
)


def words_of(name: str) -> list[str]:
    """Return the words in the name of a column, in small letters: altLabel has two."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return re.findall(r"[^\W_]+", spaced.lower())


def is_usual_name(name: str) -> bool:
    """Return whether a cell is what columns are usually called."""
    joined = "".join(words_of(name))
    return name.strip() == ROW_NUMBER or any(joined in words for words in WORDS.values())


def is_list_name(name: str) -> bool:
    """Return whether a column is called as if its cells had several values."""
    words = words_of(name)
    return bool(words) and (
        words[-1].endswith("s") or not LISTS.isdisjoint([words[-1], "".join(words)])
    )
