# SPDX-License-Identifier: Apache-2.0
"""What NIST SP 800-226 (Guidelines for Evaluating Differential Privacy Guarantees, March 2025) has
an evaluator ask, level by level of its pyramid, with the answers of this software.

An answer is about the software; where it depends on the installation, it says where the certificate
or the curator answers. Each names a page of the documentation, where the reasons stand.
Source: https://doi.org/10.6028/NIST.SP.800-226.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Question:
    """level: of the pyramid. page: of the documentation, below docs/."""

    level: str
    asked: str
    answer: str
    page: str


_TOP = "The guarantee"
_MIDDLE = "What can undermine it"
_BOTTOM = "What it rests on"

QUESTIONS = (
    Question(
        _TOP,
        "Which definition of differential privacy?",
        "(ε, δ)-differential privacy in the central model, of bounded neighbours: one unit is "
        "replaced by another, or leaves its place empty. Releases of noisy sums are ρ-zCDP or "
        "Gaussian DP and converted, rounded against the analyst.",
        "proofs.md",
    ),
    Question(
        _TOP,
        "What is the unit of privacy?",
        "A row, or all rows of one person in every table, version and link of a population. Each "
        "population below names its unit. Where a person has several rows and the schema says "
        "`row`, one row is protected, and not the person.",
        "threat-model.md",
    ),
    Question(
        _TOP,
        "How large are ε and δ, over all releases together?",
        "Each population has one cap over all analysts, listed below with what was spent. Every "
        "answer is charged to it before a private cell is read. Whether the cap is small enough is "
        "the curator's decision, and not proved by anything here.",
        "explanation/choosing-epsilon.md",
    ),
    Question(
        _TOP,
        "How do privacy losses add up, and does the budget ever begin anew?",
        "By the account's rule: sums of ε and δ, of ρ, or of Gaussian DP, in whole numbers. There "
        "is no refresh in time. A credit or a larger cap is an entry of the ledger with a reason; "
        "a renamed table joins the same population, found by keyed hashes.",
        "how-to/budgets.md",
    ),
    Question(
        _MIDDLE,
        "Is each mechanism proved, and is the code what was proved?",
        "Each has its proof in its docstring, and a search that attains its bound. The replay "
        "below repeats that search for every kind on what is installed here.",
        "proofs.md",
    ),
    Question(
        _MIDDLE,
        "Are sensitivities known without looking at the data?",
        "Contributions are clipped to bounds that come from the schema or from earlier releases; "
        "no private cell is read without a charge. Sums are exact whole numbers, so "
        "rounding cannot add to a sensitivity.",
        "adr/0002-exact-integer-sums.md",
    ),
    Question(
        _MIDDLE,
        "Where does the noise come from, and is it exposed to floating-point attacks?",
        "From OpenDP's discrete samplers on the operating system's generator; choices are drawn by "
        "exact arithmetic. No noise is a floating-point number.",
        "adr/0010-exact-choices.md",
    ),
    Question(
        _MIDDLE,
        "Do time, errors, logs or sizes of replies depend on private data?",
        "Replies wait for a deadline that comes from public facts; errors come from public facts "
        "before a charge, and are constant words after it; logs hold no private value. Load of the "
        "machine is a side channel that remains.",
        "threat-model.md",
    ),
    Question(
        _MIDDLE,
        "Do noisy answers mislead about accuracy, or about small groups?",
        "Standard errors and intervals include the noise; where an interval would be wrong, it is "
        "declined with the reason. Small groups get larger relative noise: forecasts say so before "
        "the charge.",
        "explanation/differential-privacy.md",
    ),
    Question(
        _BOTTOM,
        "Whom must the people in the data trust?",
        "The curator, who sees the rows, and whoever runs the machine. Analysts, readers of logs "
        "and editors of the ledger's database are not trusted.",
        "threat-model.md",
    ),
    Question(
        _BOTTOM,
        "How are the data protected at rest, and who may do what?",
        "The vault is separate from the ledger; roles are one table that every route and command "
        "checks; keys are stored as keyed hashes. Encryption of disks, backups and the network in "
        "front are the operator's.",
        "how-to/roles.md",
    ),
    Question(
        _BOTTOM,
        "Were more data collected than are needed?",
        "Software cannot answer this. The curator declares each column that is loaded, and columns "
        "that are not declared are not stored.",
        "how-to/load-a-table.md",
    ),
)
