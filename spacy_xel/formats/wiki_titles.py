"""What the titles and link targets of a wiki mean: namespaces, other wikis, kinds of pages."""

import html
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple
from urllib.parse import unquote

TargetKind = Literal["article", "file", "category", "namespace", "interwiki", "section"]
PageKind = Literal["article", "disambiguation page", "list"]

FILE_NAMESPACE, CATEGORY_NAMESPACE = 6, 14
# The names that every wiki understands; a dump's header gives those of its own language.
_CANONICAL = {
    "media": -2, "special": -1, "talk": 1, "user": 2, "user talk": 3, "project": 4, "wikipedia": 4,
    "wp": 4, "project talk": 5, "wikipedia talk": 5, "wt": 5, "file": 6, "image": 6,
    "file talk": 7, "image talk": 7, "mediawiki": 8, "mediawiki talk": 9, "template": 10,
    "template talk": 11, "help": 12, "help talk": 13, "category": 14, "category talk": 15,
    "portal": 100, "portal talk": 101, "book": 108, "draft": 118, "timedtext": 710, "module": 828,
    "module talk": 829,
}  # fmt: skip
_PROJECTS = """
wikt wiktionary s wikisource b wikibooks q wikiquote n wikinews v wikiversity voy wikivoyage c
commons d wikidata m meta metawikipedia species wikispecies mw mediawikiwiki w foundation
wikimedia phab phabricator doi arxiv rfc hdl iarchive gutenberg imdbname imdbtitle google tools
toollabs wikitech incubator outreach
"""
_LANGUAGES = """
aa ab ace ady af ak als alt am ami an ang ar arc ary arz as ast atj av avk awa ay az azb ba ban bar
bat-smg bcl be be-tarask be-x-old bg bh bi bjn blk bm bn bo bpy br bs bug bxr ca cbk-zam cdo ce ceb
ch cho chr chy ckb co cr crh cs csb cu cv cy da dag de din diq dsb dty dv dz ee el eml en eo es et
eu ext fa ff fi fiu-vro fj fo fr frp frr fur fy ga gag gan gcr gd gl glk gn gom gor got gu guw gv
ha hak haw he hi hif ho hr hsb ht hu hy hyw hz ia id ie ig ii ik ilo inh io is it iu ja jam jbo jv
ka kaa kab kbd kbp kcg kg ki kj kk kl km kn ko koi kr krc ks ksh ku kv kw ky la lad lb lbe lez lfn
lg li lij lld lmo ln lo lrc lt ltg lv mad mai map-bms mdf mg mh mhr mi min mk ml mn mni mnw mo mr
mrj ms mt mus mwl my myv mzn na nah nap nds nds-nl ne new ng nia nl nn no nov nqo nrm nso nv ny oc
olo om or os pa pag pam pap pcd pcm pdc pfl pi pih pl pms pnb pnt ps pt pwn qu rm rmy rn ro roa-rup
roa-tara ru rue rw sa sah sat sc scn sco sd se sg sh shi shn si simple sk skr sl sm smn sn so sq sr
srn ss st stq su sv sw szl szy ta tay tcy te tet tg th ti tk tl tn to tpi tr trv ts tt tum tw ty
tyv udm ug uk ur uz ve vec vep vi vls vo wa war wo wuu xal xh xmf yi yo za zea zh zh-classical
zh-min-nan zh-yue zu
"""
_INTERWIKI = frozenset(_PROJECTS.split()) | frozenset(_LANGUAGES.split())

# Names of templates that make a page a disambiguation page, in several languages.
_DISAMBIGUATION_NAMES = frozenset((
    "dab", "disamb", "disam", "hndis", "geodis", "numberdis", "letterdis", "schooldis",
    "callsigndis", "roaddis", "mathdab", "mil-unit-dis", "hospitaldis", "begriffsklärung",
    "homonymie", "desambiguación", "desambiguação", "disambigua", "doorverwijspagina", "dp",
    "ujednoznacznienie", "неоднозначность", "многозначность", "förgrening", "gaffel", "flertydig",
    "egyért", "rozcestník", "täsmennyssivu", "曖昧さ回避", "aimai", "消歧义", "消歧義", "동음이의",
    "توضيح", "פירושונים",
    "anlam ayrımı",
))  # fmt: skip
_MODULE_NAMESPACES = frozenset((
    "module", "modul", "modül", "modulo", "módulo", "mòdul", "moduł", "moduuli", "mô đun", "модуль",
    "модул", "モジュール", "模块", "模組", "모듈", "وحدة", "יחידה", "پودمان", "মডিউল", "मॉड्यूल",
))  # fmt: skip
_LIST_TITLES = re.compile(
    r"(?:Lists? of|Index of|Outline of|Liste (?:der|von|des?|du|d'|over)|Lista de|Lista di"
    r"|Elenco d|Lijst van|Список|Lista över) ?"
)


class Target(NamedTuple):
    """What a link points to: the title without its section, in the form that pages have."""

    kind: TargetKind
    title: str


@dataclass
class Site:
    """The names of a wiki's namespaces, in small letters, and its language."""

    lang: str = ""
    namespaces: dict[str, int] = field(default_factory=lambda: dict(_CANONICAL))

    def add_namespace(self, name: str, key: int) -> None:
        if name:
            self.namespaces[name.casefold()] = key

    def target(self, text: str) -> Target:
        """Return what the part of a link before the bar points to."""
        leading_colon = text.lstrip().startswith(":")
        title = clean_title(text)
        if not title:
            return Target("section", "")
        prefix, colon, rest = title.partition(":")
        if colon and rest:
            name = prefix.strip().casefold()
            key = self.namespaces.get(name)
            if key == FILE_NAMESPACE and not leading_colon:
                return Target("file", title)
            if key == CATEGORY_NAMESPACE and not leading_colon:
                return Target("category", upper_first(rest.strip()))
            if key is not None:
                return Target("namespace", title)
            if name in _INTERWIKI:
                return Target("interwiki", title)
        return Target("article", title)


def clean_title(text: str) -> str:
    """Return a title as pages have it: no section, no underscores, the first letter a capital."""
    if "&" in text:
        text = html.unescape(text)
    if "%" in text:
        text = unquote(text)
    text = text.partition("#")[0].replace("_", " ")
    return upper_first(" ".join(text.split()).lstrip(": "))


def upper_first(title: str) -> str:
    first = title[:1].upper()
    # "ß" has no capital of one letter; the wiki leaves it as it is.
    return first + title[1:] if len(first) == 1 else title


def templates_of(page_names: Iterable[str]) -> list[str]:
    """Return the names of templates from the full names of all pages that a page transcludes.

    A module may have "disambiguation" in its name because it finds out whether a page is one, so
    modules and subpages are left out.
    """
    names = (name.partition(":") for name in page_names)
    return [
        name
        for namespace, _, name in names
        if namespace.casefold() not in _MODULE_NAMESPACES and "/" not in name
    ]


def page_kind(title: str, template_names: Iterable[str], text: str = "") -> PageKind:
    """Tell disambiguation pages and lists, which are about no one thing, from articles."""
    if title.endswith("(disambiguation)") or "__DISAMBIG__" in text:
        return "disambiguation page"
    for name in template_names:
        name = name.casefold()
        if name in _DISAMBIGUATION_NAMES:
            return "disambiguation page"
        # {{disambiguation needed}} marks a link, not the page.
        if "disambig" in name and "needed" not in name and "inline" not in name:
            return "disambiguation page"
    return "list" if _LIST_TITLES.match(title) else "article"
