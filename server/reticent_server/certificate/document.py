# SPDX-License-Identifier: Apache-2.0
"""The certificate: one JSON document, which is signed, and a page that a person reads."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from reticent_server.certificate.installation import populations, software
from reticent_server.certificate.questions import QUESTIONS
from reticent_server.certificate.replay import DELTA, EPSILONS, RECORDS, KindReplay, kinds_of
from reticent_server.pipeline.books import Books

_PYRAMID = "The questions follow the pyramid of NIST SP 800-226 (doi.org/10.6028/NIST.SP.800-226)."

_HEADS = (
    "| kind | plans | steps | pairs a step | largest share of a charge | drawn otherwise | "
    "refused |"
)

FORMAT = "reticent-certificate-1"

MEMBERS = frozenset(
    ("format", "made_at", "statement", "software", "ledger", "populations", "questions", "replay")
)
"""What a certificate says; one that has another member is none."""

STATEMENT = (
    "Replacing one unit of a population (below) by any other, or by none, changes the probability "
    "of any set of replies to all analysts together by a factor of at most exp(ε) but for an event "
    "of probability δ, with ε and δ at most those of the population's cap. Replies whose guarantee "
    "is conditional hold under the assumptions that each of them names."
)


def document_of(
    books: Books, replays: Sequence[KindReplay], problems: Sequence[str], at: str
) -> Mapping[str, Any]:
    """The certificate. problems: of the ledger, as `ledger verify` says them. at: ISO 8601, UTC."""
    return {
        "format": FORMAT,
        "made_at": at,
        "statement": STATEMENT,
        "software": software(),
        "ledger": {"head": books.ledger.head(), "problems": list(problems)},
        "populations": populations(books),
        "questions": [asdict(each) for each in QUESTIONS],
        "replay": {
            "records": RECORDS,
            "epsilons": list(EPSILONS),
            "delta": DELTA,
            "every_kind": {each.kind for each in replays} == {each.name for each in kinds_of(None)},
            "holds": all(each.holds for each in replays),
            "kinds": [asdict(each) | {"holds": each.holds} for each in replays],
        },
    }


def page_of(document: Mapping[str, Any], fingerprint: str) -> str:
    """The same as Markdown, with the fingerprint of the key that has signed it."""
    lines = [
        "# Certificate of a Reticent installation",
        *_head(document, fingerprint),
        "## Populations",
        *_populations(document["populations"]),
        "## What an evaluator asks",
        _PYRAMID,
        *_questions(document["questions"]),
        "## Replay of every kind's search",
        *_replay(document["replay"]),
    ]
    return "\n\n".join(lines) + "\n"


def _head(document: Mapping[str, Any], fingerprint: str) -> Iterator[str]:
    installed, ledger = document["software"], document["ledger"]
    libraries = ", ".join(f"{name} {known}" for name, known in installed["libraries"].items())
    made = f"- Made at {document['made_at']} by Reticent {installed['reticent-server']}"
    yield document["statement"]
    yield "\n".join(
        (
            f"{made}, whose source has the SHA-256 `{installed['source_sha256']}`.",
            f"- Python {installed['python']} on {installed['platform']}; {libraries}.",
            f"- Head of the ledger: `{ledger['head']}`. {_verified(ledger['problems'])}",
            f"- Signed with the key `{fingerprint}`.",
        )
    )


def _verified(problems: Sequence[str]) -> str:
    if not problems:
        return "Every balance, release and row is as its entries say."
    return f"**{len(problems)} problems**: {' '.join(problems)}"


def _populations(known: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not known:
        yield "None is loaded."
        return
    rows = [
        "| population | unit | places | data sets | cap | spent |",
        "|---|---|---|---|---|---|",
        *(_population(each) for each in known),
    ]
    yield "\n".join(rows)


def _population(each: Mapping[str, Any]) -> str:
    cap = each["cap"]
    names = ", ".join(f"{d['dataset']} (n = {d['n']})" for d in each["datasets"])
    given = "none: nothing can be asked"
    spent = ""
    if cap is not None:
        given = f"ε = {cap['epsilon']:g}, δ = {cap['delta']:g}, {cap['rule']}"
        spent = ", ".join(f"{name} {value:.4g}" for name, value in cap["spent"].items())
    places = each["places"] if each["places"] is not None else ""
    return f"| {each['population']} | {each['unit']} | {places} | {names} | {given} | {spent} |"


def _questions(questions: Sequence[Mapping[str, str]]) -> Iterator[str]:
    level = ""
    for each in questions:
        if each["level"] != level:
            level = each["level"]
            yield f"### {level}"
        yield f"**{each['asked']}** {each['answer']} ({each['page']})"


def _replay(replay: Mapping[str, Any]) -> Iterator[str]:
    verdict = "No pair of units lost more than its step was charged."
    if not replay["holds"]:
        verdict = "**Some pair of units lost more than its step was charged.**"
    epsilons = ", ".join(f"{each:g}" for each in replay["epsilons"])
    which = "Each kind's examples" if replay["every_kind"] else "The examples of some kinds"
    yield (
        f"{which} on {replay['records']} made-up records, for a row, a person with one "
        f"row or none, and a person with up to three, at ε = {epsilons}. {verdict} Plans whose "
        "parts are all drawn otherwise (candidates, blocks) have no distance to search, and "
        "examples that are not for such a unit are refused: both are counted in the last columns."
    )
    yield "\n".join(
        (
            _HEADS,
            "|---|---|---|---|---|---|---|",
            *(_kind(each) for each in replay["kinds"]),
        )
    )


def _kind(each: Mapping[str, Any]) -> str:
    share = f"{each['attained']:.3f}" if each["steps"] else ""
    wrong = "" if each["holds"] else f" **{', '.join(each['beyond'])}**"
    return (
        f"| {each['kind']}{wrong} | {each['plans']} | {each['steps']} | {each['pairs']} | {share} "
        f"| {each['drawn']} | {each['refused']} |"
    )
