# SPDX-License-Identifier: Apache-2.0
"""An example or two for every command, shown at the end of its help; a test runs them all."""

from collections.abc import Mapping

EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "init": ("reticent init",),
    "dataset schema": ("reticent dataset schema houses.csv > houses.yaml",),
    "dataset load": (
        "reticent dataset load houses houses.csv --schema houses.yaml",
        "reticent dataset load flats houses.csv --schema houses.yaml --population houses",
    ),
    "population add": (
        "reticent population add clinic --column patient --capacity 30000",
        "reticent population add register --column patient --register patients.csv",
    ),
    "population widen": ("reticent population widen clinic --capacity 40000",),
    "population renew": (
        'reticent population renew clinic --capacity 50000 --reason "the vault is lost"',
    ),
    "population list": ("reticent population list",),
    "population show": ("reticent population show houses --json",),
    "dataset register": ("reticent dataset register sales --parquet sales --schema sales.yaml",),
    "dataset list": ("reticent dataset list",),
    "dataset check": ("reticent dataset check houses",),
    "dataset show": ("reticent dataset show houses", "reticent dataset show houses --json"),
    "dataset profile": ("reticent dataset profile houses --epsilon 0.5",),
    "dataset publish": ("reticent dataset publish rel_0123456789abcdef --yes",),
    "dataset policy": (
        "reticent dataset policy houses --max-epsilon 2",
        "reticent dataset policy houses --tier unconditional --tier conditional",
    ),
    "dataset append": ("reticent dataset append visits visits-2026.csv",),
    "dataset link": ("reticent dataset link clinic --table visit=visits --table person=patients",),
    "dataset retire": ("reticent dataset retire flats --yes",),
    "budget set": (
        "reticent budget set --dataset houses --epsilon 10 --delta 1e-5",
        "reticent budget set --dataset houses --analyst ada --epsilon 3 --delta 1e-6",
    ),
    "budget show": ("reticent budget show", "reticent budget show --analyst ada --json"),
    "budget credit": (
        'reticent budget credit --dataset houses --rho 0.001 --reason "lost in a power cut" --yes',
    ),
    "budget freeze": (
        'reticent budget freeze --dataset houses --analyst ada --reason "the key was copied"',
    ),
    "analyst add": (
        "reticent analyst add ada --dataset houses --epsilon 3 --delta 1e-6",
        "reticent analyst add bob --expires-days 90",
    ),
    "analyst link": ("reticent analyst link ada --oidc-subject 248289761001",),
    "analyst unlink": ("reticent analyst unlink ada",),
    "analyst list": ("reticent analyst list",),
    "analyst rotate-key": (
        "reticent analyst rotate-key ada",
        "reticent analyst rotate-key ada --drop-old --yes",
    ),
    "analyst revoke": (
        "reticent analyst revoke ada --dataset houses",
        "reticent analyst revoke bob --yes",
    ),
    "curator add": (
        "reticent curator add carol --role curator --role budget_officer",
        "reticent curator add prometheus",
    ),
    "curator link": ("reticent curator link carol --oidc-email carol@example.org",),
    "curator unlink": ("reticent curator unlink carol",),
    "secrets show": ("reticent secrets show",),
    "secrets rotate-pepper": ("reticent secrets rotate-pepper",),
    "secrets retire": ("reticent secrets retire 1 --force --yes",),
    "curator roles": ("reticent curator roles carol --role auditor",),
    "curator list": ("reticent curator list",),
    "curator rotate-key": ("reticent curator rotate-key carol",),
    "curator sign-out": ("reticent curator sign-out carol",),
    "curator revoke": ("reticent curator revoke carol --yes",),
    "project requests": ("reticent project requests",),
    "project list": ("reticent project list --json",),
    "project approve": (
        "reticent project approve rq_0123456789abcdef",
        (
            "reticent project approve rq_0123456789abcdef --budget houses=1.5,1e-6 --reason "
            '"enough for the plan"'
        ),
    ),
    "project refuse": (
        'reticent project refuse rq_0123456789abcdef --reason "no plan is attached"',
    ),
    "project remove": ("reticent project remove trial --dataset houses",),
    "project close": ("reticent project close trial --yes",),
    "proposal list": ("reticent proposal list",),
    "proposal approve": ("reticent proposal approve ap_0123456789abcdef",),
    "proposal refuse": ("reticent proposal refuse ap_0123456789abcdef",),
    "protocol check": (
        "reticent protocol check protocol.json",
        "reticent protocol check protocol.json --dataset houses --site north",
    ),
    "protocol accept": ("reticent protocol accept protocol.json --dataset houses --site north",),
    "protocol list": ("reticent protocol list",),
    "protocol withdraw": (f"reticent protocol withdraw {'0123456789abcdef' * 4} --dataset houses",),
    "ledger show": ("reticent ledger show --limit 10",),
    "ledger verify": ("reticent ledger verify",),
    "ledger head": ("reticent ledger head > head.txt",),
    "ledger export": ("reticent ledger export > ledger.jsonl",),
    "ledger accept-rollback": (
        'reticent ledger accept-rollback --reason "no newer copy exists" --yes',
    ),
    "certify": (
        "reticent certify --kind mean --kind crosstab --out certificate",
        "reticent certify --check certificate.jws",
    ),
    "serve": ("reticent serve", "reticent serve --port 8080 --curator-port 8081 --workers 2"),
    "demo": ("reticent demo", "reticent demo --keep somewhere"),
}


def epilog(command: str) -> str | None:
    """The end of a command's help."""
    lines = EXAMPLES.get(command)
    return (
        None if lines is None else "\n\n".join(["Examples:" if lines[1:] else "Example:", *lines])
    )
