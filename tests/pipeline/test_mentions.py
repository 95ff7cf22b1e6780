"""The names that xel_mentions learns not to mark."""

import spacy

from spacy_xel.formats.docbin import doc_of_text
from spacy_xel.kb.knowledge_base import knowledge_base_loader
from spacy_xel.types import AnnotatedText, Mention


def corpus_of(texts):
    from spacy.training import Example

    def read(nlp):
        return [Example(nlp.make_doc(t.text), doc_of_text(t, nlp)) for t in texts]

    return read


def test_names_that_a_corpus_hardly_links_are_stopped(small_store):
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("xel_mentions", config={"min_occurrences": 3, "min_link_rate": 0.5})
    text = AnnotatedText("", "Troy and Paris", (Mention(9, 14, ("Q90",)),), "en")
    loader = knowledge_base_loader(small_store)
    pipe.initialize(nlp=nlp, kb_loader=loader, corpus=corpus_of([text] * 2))
    assert [ent.text for ent in nlp("Troy and Paris").ents] == ["Troy", "Paris"]
    pipe.initialize(nlp=nlp, corpus=corpus_of([text] * 3))
    assert [ent.text for ent in nlp("Troy and Paris").ents] == ["Paris"]
    assert "troy" in pipe.stop_names


def test_stop_words_of_the_language_are_stopped(tmp_path, write_jsonl):
    from spacy_xel.kb.build import build_store

    build_store(write_jsonl([{"id": "A", "title": "The Who", "aliases": ["Who", "Them"]}]),
                tmp_path / "kb")  # fmt: skip
    nlp = spacy.blank("en")
    loader = knowledge_base_loader(tmp_path / "kb")
    nlp.add_pipe("xel_mentions").initialize(nlp=nlp, kb_loader=loader)
    assert [ent.text for ent in nlp("who saw them? the who").ents] == ["the who"]
    nlp.get_pipe("xel_mentions").initialize(nlp=nlp, stop_names=[])
    assert [ent.text for ent in nlp("who saw them?").ents] == ["who", "them"]
