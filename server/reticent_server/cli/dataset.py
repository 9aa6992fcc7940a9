# SPDX-License-Identifier: Apache-2.0
"""`reticent dataset …`: load, register, list, show, profile, publish, policy, retire and schema.

What reads private cells is imported by the commands that do: Arrow takes half a second to import.
"""

from collections.abc import Mapping
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from reticent_server.catalog.json_values import policy_to_json, profile_to_json, schema_to_json
from reticent_server.catalog.schema_file import read_schema
from reticent_server.cli.common import (
    JsonFlag,
    command,
    err,
    out,
    print_json,
    show,
    user,
    waiting,
)
from reticent_server.domain.facts import DatasetFacts, Policy, Profile
from reticent_server.domain.reading import NUMBERS, Reading, read_reading
from reticent_server.domain.roles import Act
from reticent_server.domain.schema import USUAL_MARKERS, Column
from reticent_server.domain.source import LinkedTables, Source
from reticent_server.errors import CuratorError
from reticent_server.opening import open_approvals, open_books, open_catalog
from reticent_server.pipeline.policies import TIERS, set_policy
from reticent_server.settings import Settings

if TYPE_CHECKING:
    from reticent_server.intake.versions import LoadedVersion
    from reticent_server.vault.draft import Proposal

app = typer.Typer(help="Load private tables and describe them.", no_args_is_help=True)

_SHOWN_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_SHOWN_LEVELS = 6

FormatOption = Annotated[
    Literal["csv", "parquet", "arrow", "xlsx", "sas", "stata", "spss", "duckdb"] | None,
    typer.Option("--format", help="By default what the file begins with, whatever its name."),
]
ReadOption = Annotated[
    list[str] | None,
    typer.Option(
        "--read",
        metavar="KEY=VALUE",
        help="How the file is read, where that is understood wrongly, such as "
        "separator=semicolon, decimal=comma, encoding=windows-1252, header=3, skip_last=2, "
        "sheet=2024. Repeat it.",
    ),
]
FILE_HELP = "Text with any separator (CSV), Excel, Parquet, Arrow, SAS, Stata, SPSS or DuckDB."
Name = Annotated[str, typer.Argument(help="The data set's name.")]

OverlapReason = Annotated[
    str | None,
    typer.Option(
        help=(
            "Why the population is kept separate from another that has some of the same persons; "
            "kept for curators, and in no export."
        )
    ),
]
PublishCount = Annotated[
    bool,
    typer.Option(
        "--publish-count",
        help="Publish a number of persons although the population declares no places.",
    ),
]


@app.command()
@command(Act.LOAD)
def load(
    name: Name,
    file: Annotated[Path, typer.Argument(help=FILE_HELP)],
    *,
    schema: Annotated[Path, typer.Option(help="The schema file (YAML).")],
    population: Annotated[
        str | None, typer.Option(help="Whose budget it spends; by default the data set's name.")
    ] = None,
    overlap_reason: OverlapReason = None,
    publish_count: PublishCount = False,
    as_format: FormatOption = None,
    read: ReadOption = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse values outside the bounds; do not clip.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Load a private file as the current version of a data set."""
    from reticent_server.cli.dataset_load import load_dataset  # noqa: PLC0415

    _tell(schema, as_json=as_json)
    with Progress(console=err, transient=True) as bar:
        task = bar.add_task(f"Loading {file.name}", total=1.0)
        loaded = load_dataset(
            Settings(),
            name,
            file,
            schema,
            population=population,
            separate=overlap_reason,
            publishes=publish_count,
            reading=_said(read, as_format),
            strict=strict,
            progress=lambda done: bar.update(task, completed=done),
        )
    _show_version(loaded, "Loaded", as_json=as_json)


@app.command()
@command(Act.LOAD)
def append(
    name: Name,
    file: Annotated[
        Path, typer.Argument(help="A file with the new rows, as `dataset load` takes it.")
    ],
    overlap_reason: OverlapReason = None,
    publish_count: PublishCount = False,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Refuse values outside the bounds and rows beyond max_rows."),
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Append a new wave of rows: a new version with the old rows and these. Schema and budget
    stay.
    """
    from reticent_server.cli.dataset_append import append_dataset  # noqa: PLC0415

    with Progress(console=err, transient=True) as bar:
        task = bar.add_task(f"Appending {file.name}", total=1.0)
        appended = append_dataset(
            Settings(),
            name,
            file,
            separate=overlap_reason,
            publishes=publish_count,
            strict=strict,
            progress=lambda done: bar.update(task, completed=done),
        )
    _show_version(appended, "Appended", as_json=as_json)


@app.command()
@command(Act.LOAD)
def link(
    name: Name,
    table: Annotated[
        list[str],
        typer.Option(help="NAME=DATASET, such as visits=clinic_visits. Repeat it."),
    ],
    publish_count: PublishCount = False,
    as_json: JsonFlag = False,
) -> None:
    """Link tables about the same persons as one data set, which is asked about features of
    persons.
    """
    from reticent_server.cli.dataset_link import link_datasets  # noqa: PLC0415

    pairs = [each.partition("=") for each in table]
    tables = {alias: dataset for alias, _, dataset in pairs}
    if len(tables) < len(pairs) or not all(dataset for _, _, dataset in pairs):
        raise CuratorError("Give each table once, as --table NAME=DATASET.")
    linked = link_datasets(Settings(), name, tables, publishes=publish_count)
    _show_version(linked, "Linked", as_json=as_json)


@app.command()
@command(Act.LOAD)
def register(
    name: Name,
    *,
    schema: Annotated[Path, typer.Option(help="The schema file (YAML).")],
    url: Annotated[
        str | None,
        typer.Option(
            help="sqlite:///FILE or postgresql://…, kept in the secrets file and never shown; "
            "RETICENT_SOURCE_URL if it is left out."
        ),
    ] = None,
    table: Annotated[str | None, typer.Option(help="A table or view at --url.")] = None,
    order: Annotated[
        list[str] | None,
        typer.Option(help="A key column; by default the table's primary key. Repeat it."),
    ] = None,
    parquet: Annotated[
        str | None,
        typer.Option(help="A directory of .parquet files, or s3://BUCKET/PREFIX."),
    ] = None,
    population: Annotated[
        str | None, typer.Option(help="Whose budget it spends; by default the data set's name.")
    ] = None,
    overlap_reason: OverlapReason = None,
    publish_count: PublishCount = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse values outside the bounds; do not clip.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Register rows that stay where they are as the current version of a data set."""
    from reticent_server.cli.dataset_register import SourcePlace, register_dataset  # noqa: PLC0415

    settings = Settings()
    known_url = url or (settings.source_url if table else None)
    place = SourcePlace(url=known_url, table=table, order=tuple(order or ()), parquet=parquet)
    _tell(schema, as_json=as_json)
    with Progress(console=err, transient=True) as bar:
        task = bar.add_task(f"Checking {name}", total=1.0)
        registered = register_dataset(
            settings,
            name,
            place,
            schema,
            population=population,
            separate=overlap_reason,
            publishes=publish_count,
            strict=strict,
            progress=lambda done: bar.update(task, completed=done),
        )
    _show_version(registered, "Registered", as_json=as_json)


def _tell(schema: Path, *, as_json: bool) -> None:
    """Shows, before a row is read, what analysts will be told of each column."""
    columns = read_schema(schema).columns
    if not as_json:
        rows = [_column_row(column) for column in columns]
        show(rows, as_json=False, title="Analysts will be told of each column")


def _show_version(loaded: "LoadedVersion", title: str, *, as_json: bool) -> None:
    if as_json:
        left_out = {"left_out": loaded.left_out} if loaded.facts.schema.unit.many_rows else {}
        outside = {"outside": loaded.outside} if loaded.outside else {}
        print_json(_summary(loaded.facts) | {"clipped": dict(loaded.clipped)} | left_out | outside)
        return
    show([_summary(loaded.facts)], as_json=False, title=title)
    _show_clipped(loaded.clipped, loaded.facts)
    if loaded.left_out:
        out.print(
            f"Rows left out (private: for the curator only): {loaded.left_out}, beyond the "
            f"{loaded.facts.schema.unit.max_rows} of a {loaded.facts.schema.unit.column}."
        )
    if loaded.outside:
        out.print(
            f"Persons left out (private: for the curator only): {loaded.outside}, who have no "
            "place in population "
            f"{loaded.facts.population}. More places are declared with `reticent population widen`."
        )


def _show_clipped(clipped: Mapping[str, int], facts: DatasetFacts) -> None:
    rows = [
        {"column": name, "values clipped": count, "share": count / facts.slots}
        for name, count in clipped.items()
        if count
    ]
    if rows:
        show(rows, as_json=False, title="Values outside the bounds (private: for the curator only)")


@app.command("list")
@command(Act.LOOK)
def list_datasets(as_json: JsonFlag = False) -> None:
    """List the data sets that are not retired, and whether their rows can be read now."""
    from reticent_server.cli.dataset_check import cause_of, sources_of  # noqa: PLC0415

    settings = Settings()
    with open_catalog(settings) as catalog:
        sources = sources_of(settings, catalog)
        rows = [
            _summary(facts) | {"readable": cause_of(sources, facts.version_id) or True}
            for facts in catalog.list()
        ]
    show(rows, as_json=as_json)


@app.command()
@command(Act.LOAD)
def check(name: Name, as_json: JsonFlag = False) -> None:
    """Read a data set, and compare it with what was loaded or registered. What it prints about rows
    is private: for the curator only.
    """
    from reticent_server.cli.dataset_check import check_dataset  # noqa: PLC0415

    with Progress(console=err, transient=True) as bar:
        task = bar.add_task(f"Reading {name}", total=1.0)
        found = check_dataset(Settings(), name, lambda done: bar.update(task, completed=done))
    bad = {column: cells for column, cells in found.bad_cells.items() if cells}
    if as_json:
        rows = {"recorded_rows": found.recorded, "rows_now": found.rows}
        said = {"differences": found.differences, "bad_cells": bad}
        print_json(_summary(found.facts) | {"readable": found.cause or True} | rows | said)
    elif found.cause:
        out.print(f"{name} cannot be read: {found.cause}.", markup=False)
    else:
        rows = {"rows recorded": found.recorded, "rows now": found.rows}
        show([_summary(found.facts) | rows], as_json=False, title="Private: for the curator only")
        for sentence in found.differences or ["It is as it was recorded."] * (not bad):
            out.print(sentence, markup=False)
        if bad:
            cells = [{"column": column, "cells": count} for column, count in bad.items()]
            show(cells, as_json=False, title="Cells that do not fit the schema (private)")
    if found.cause or found.differences:
        raise typer.Exit(1)


def _summary(facts: DatasetFacts) -> dict[str, Any]:
    return {
        "dataset": facts.name,
        "population": facts.population,
        "version": facts.version,
        "n": facts.n,
        "columns": len(facts.schema.columns),
        "profile": facts.profile is not None,
    }


@app.command("show")
@command(Act.LOOK)
def show_dataset(name: Name, as_json: JsonFlag = False) -> None:
    """Show what is public about a data set."""
    with open_catalog(Settings()) as catalog:
        facts = catalog.facts(name)
        linked = _linked(catalog.source(facts.version_id))
    if as_json:
        print_json(_everything(facts) | ({"linked": linked} if linked else {}))
        return
    show([_summary(facts)], as_json=False)
    if linked:
        show(linked, as_json=False, title="Linked tables")
    out.print(facts.schema.description, markup=False)
    unit = facts.schema.unit
    rows = "a row" if unit.column is None else f"{unit.column}, at most {unit.max_rows} rows"
    out.print(f"Protected unit: {rows}", markup=False)
    show([_column_row(column) for column in facts.schema.columns], as_json=False, title="Columns")
    _show_policy(facts.policy, as_json=False)
    if facts.profile is not None:
        show(_profile_rows(facts, facts.profile), as_json=False, title="Profile (released)")


def _linked(source: Source) -> list[dict[str, Any]]:
    """The versions that a link reads."""
    tables = source.tables if isinstance(source, LinkedTables) else ()
    return [{"table": t.name, "dataset": t.dataset, "version": t.version} for t in tables]


def _everything(facts: DatasetFacts) -> dict[str, Any]:
    return _summary(facts) | {
        "version_id": facts.version_id,
        "default_delta": facts.default_delta,
        "schema": schema_to_json(facts.schema),
        "policy": policy_to_json(facts.policy),
        "profile": None if facts.profile is None else profile_to_json(facts.profile),
    }


def _column_row(column: Column) -> dict[str, Any]:
    return {
        "column": column.name,
        "kind": f"{column.shown_kind}, {column.role}" if column.role else column.shown_kind,
        "lower": None if column.levels else _shown_bound(column, column.lower),
        "upper": None if column.levels else _shown_bound(column, column.upper),
        "levels": _listed(column.levels),
        "missing": (
            f"the usual {len(USUAL_MARKERS)}"
            if column.missing == USUAL_MARKERS
            else _listed(repr(marker) for marker in column.missing)
        ),
        "label": column.label,
    }


def _shown_bound(column: Column, value: float) -> float | str:
    return column.shown(value) if column.is_date else value


def _listed(values: Any) -> str:
    texts = list(values)
    more = f", … ({len(texts)})" if len(texts) > _SHOWN_LEVELS else ""
    return ", ".join(texts[:_SHOWN_LEVELS]) + more


@app.command()
@command(Act.PROFILE)
def profile(
    name: Name,
    epsilon: Annotated[float, typer.Option(help="ε, charged to the population's cap.")],
    delta: Annotated[float | None, typer.Option(help="δ; by default the policy's.")] = None,
    forecast: Annotated[
        bool,
        typer.Option("--forecast", help="Only forecast its precision; nothing is charged."),
    ] = False,
    instead: Annotated[
        bool,
        typer.Option(
            "--instead", help="Release another one, charged too, that plans use from then on."
        ),
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Release the profile of the current version: private quantiles and noisy counts."""
    from reticent_server.app import build_services  # noqa: PLC0415
    from reticent_server.pipeline.profile import (  # noqa: PLC0415
        profile_forecast,
        release_profile,
    )

    services = build_services(Settings())
    expected = profile_forecast(services, name, epsilon=epsilon, delta=delta)
    if forecast:
        _show_forecast(expected, as_json=as_json)
        return
    with waiting("Computing the profile"):
        release = release_profile(
            services, name, epsilon=epsilon, delta=delta, by=user(), instead=instead
        )
    if as_json:
        print_json(release)
        return
    facts = services.catalog.facts(name)
    if facts.profile is not None:
        rows = _profile_rows(facts, facts.profile)
        noise = {name: _off_by(each) for name, each in expected["columns"].items()}
        rows = [{**row, "off by": noise.get(row["column"], "")} for row in rows]
        show(rows, as_json=False, title="Profile (released)")
        _name_unresolved(expected)


def _show_forecast(expected: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(expected)
        return
    rows = [
        {"column": name, "off by": _off_by(each), "resolved": each["resolved"]}
        for name, each in expected["columns"].items()
    ]
    show(rows, as_json=False, title="Forecast precision of a profile; nothing is charged")
    _name_unresolved(expected)


def _off_by(each: Mapping[str, Any]) -> str:
    if "count_sd" in each:
        return f"counts by {each['count_sd']:.3g} records (standard deviation)"
    return f"quantiles by {each['rank_error']:.2%} of the records"


def _name_unresolved(expected: Mapping[str, Any]) -> None:
    if expected["unresolved"]:
        out.print(
            f"Not resolved at this ε: {', '.join(expected['unresolved'])}. Do not rely on their "
            "numbers; a larger ε, or narrower bounds, would resolve more.",
            markup=False,
        )


@app.command()
@command(Act.PROFILE)
def publish(
    release: Annotated[str, typer.Argument(help="The release's id, such as an analyst's study.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Publish a released answer to all analysts with a grant on its data set, for ever; it costs
    nothing more.
    """
    from reticent_server.pipeline.publishing import publish as publish_release  # noqa: PLC0415

    if not yes:
        question = (
            f"Show {release}, and what was asked, to all analysts with a grant? This cannot be "
            "undone."
        )
        typer.confirm(question, abort=True, err=True)
    books = open_books(Settings())
    document = publish_release(books, release, by=user())
    row = {
        "release": document["id"],
        "dataset": document["dataset"],
        "kind": document["query"]["kind"],
    }
    show([row | {"state": "published"}], as_json=as_json)


def _profile_rows(facts: DatasetFacts, profile: Profile) -> list[dict[str, Any]]:
    return [_profile_row(c, profile) for c in facts.schema.columns if c.name in profile.columns]


def _profile_row(column: Column, profile: Profile) -> dict[str, Any]:
    known = profile.columns[column.name]
    quantiles = known.known_quantiles()
    counts = (f"{level}: {count:g}" for level, count in known.counted(column).items())
    shown = {f"{p:.0%}": quantiles.get(p) for p in _SHOWN_QUANTILES}
    return {"column": column.name, **shown, "counts": _listed(counts), "missing": known.missing}


@app.command()
@command(Act.SET_POLICY)
def policy(
    name: Name,
    max_epsilon: Annotated[float | None, typer.Option(help="Largest ε of one request.")] = None,
    default_delta: Annotated[float | None, typer.Option(help="δ where a request has none.")] = None,
    tier: Annotated[list[str] | None, typer.Option(help="An allowed guarantee; repeat it.")] = None,
    second_person: Annotated[
        bool | None,
        typer.Option(
            help="Whether caps, credits, policies and loads need somebody else's approval."
        ),
    ] = None,
    protocol_required: Annotated[
        bool | None,
        typer.Option(help="Whether only what an accepted protocol asks is answered."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Change what is allowed on a data set; what is not given stays as it is."""
    settings = Settings()
    with open_catalog(settings) as catalog, open_approvals(settings) as approvals:
        facts = catalog.facts(name)
        changed = _changed(facts.policy, max_epsilon, default_delta, tier)
        if second_person is not None:
            changed = replace(changed, second_person=second_person)
        if protocol_required is not None:
            changed = replace(changed, protocol_required=protocol_required)
        set_policy(catalog, approvals, name, changed, by=user())
    _show_policy(changed, as_json=as_json)


def _show_policy(policy: Policy, *, as_json: bool) -> None:
    row = policy_to_json(policy)
    if not as_json:
        row["tiers"] = ", ".join(policy.tiers)
    show([row], as_json=as_json, title="Policy")


def _changed(
    policy: Policy,
    max_epsilon: float | None,
    default_delta: float | None,
    tier: list[str] | None,
) -> Policy:
    if max_epsilon is not None:
        if not (isfinite(max_epsilon) and max_epsilon > 0):
            raise CuratorError("--max-epsilon must be a positive number.")
        policy = replace(policy, max_epsilon=max_epsilon)
    if default_delta is not None:
        if not 0 < default_delta < 1:
            raise CuratorError("--default-delta must be between 0 and 1.")
        policy = replace(policy, default_delta=default_delta)
    if tier:
        if not set(tier) <= set(TIERS):
            raise CuratorError(f"--tier must be one of {', '.join(TIERS)}.")
        policy = replace(policy, tiers=tuple(t for t in TIERS if t in tier))
    return policy


@app.command()
@command(Act.LOAD)
def retire(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Make a data set absent for analysts; budgets and stored releases stay as they are."""
    with open_catalog(Settings()) as catalog:
        facts = catalog.facts(name)
        if not yes:
            question = f"Retire {name} (version {facts.version}, n = {facts.n})?"
            typer.confirm(question, abort=True, err=True)
        catalog.retire(name, by=user())
    show([{"dataset": name, "state": "retired"}], as_json=as_json)


@app.command()
@command(None)
def schema(
    file: Annotated[Path, typer.Argument(help=FILE_HELP)],
    as_format: FormatOption = None,
    read: ReadOption = None,
    to: Annotated[
        Path | None, typer.Option("--out", help="Where the draft is written, if not on the screen.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Show what is understood of a file, and draft its schema; bounds and levels are for the
    curator to fill in.
    """
    from reticent_server.intake.looking import OWN_LIMITS, Look, looked  # noqa: PLC0415
    from reticent_server.vault.draft import draft_text  # noqa: PLC0415

    if to is not None and to.exists():
        raise CuratorError(f"{to} exists; give another --out, or delete it.")
    proposal = looked(Look(file.absolute(), None, _said(read, as_format)), OWN_LIMITS)
    text = draft_text(proposal, file.name)
    if as_json:
        understood = {"file": proposal.reading.said, "questions": list(proposal.questions)}
        print_json({"schema": text} | understood)
        return
    _show_understood(proposal)
    if to is None:
        typer.echo(text, nl=False)
    else:
        to.write_text(text, "utf-8")
        err.print(f"Written to {to}. Fill in bounds and levels, and load with it.", markup=False)


def _said(read: list[str] | None, as_format: str | None) -> Reading:
    """What --read and --format say. Raises CuratorError."""
    pairs = [each.partition("=") for each in read or ()]
    said: dict[object, object] = {"format": as_format} if as_format else {}
    for key, sign, value in pairs:
        if not sign or key in said:
            raise CuratorError("Give each part once, as --read KEY=VALUE, such as separator=tab.")
        said[key] = int(value) if key in NUMBERS and value.isdecimal() else value
    try:
        return read_reading(said)
    except ValueError as error:
        raise CuratorError(f"--read: {error}.") from None


def _show_understood(proposal: "Proposal") -> None:
    """On the error stream: how the file is read, and its first rows, which are private."""
    said = ", ".join(f"{key} {value}" for key, value in proposal.reading.said.items())
    err.print(f"Understood: {said}; {len(proposal.columns)} columns.", markup=False)
    all_of_it = (
        "all of them" if proposal.whole else "the first ones; later ones are checked by the load"
    )
    err.print(f"Rows looked at: {proposal.rows}, {all_of_it}.", markup=False)
    table = Table(title="First rows (private: for the curator only)", title_justify="left")
    for name in ("column", "kind", "missing cells found", "first rows"):
        table.add_column(name, overflow="fold")
    for column in proposal.columns:
        kind = f"{column.kind or 'cannot be loaded'}{' ' + column.form if column.form else ''}"
        kind += f" ({said})" if (said := column.seen or (column.idle and "left out")) else ""
        missing = ", ".join(repr(text) for text in column.found)
        cells = " · ".join(proposal.of(column.source))
        table.add_row(*(Text(text) for text in (column.source, kind, missing, cells)))
    err.print(table)
    for column in proposal.columns:
        for said in (column.idle and f"left out of the draft: {column.idle}", column.warning):
            if said:
                err.print(f"Column {column.source}: {said}.", markup=False)
    for question in proposal.questions:
        err.print(f"To be answered, with --read: {question}", markup=False)
