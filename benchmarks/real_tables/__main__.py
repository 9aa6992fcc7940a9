# SPDX-License-Identifier: Apache-2.0
"""python -m benchmarks.real_tables [--tables FOLDER] [--reps R] [--eps E …] [--asked default
squared …] [--half 0|1] [--only TEXT] [--kind linear|glm] [--n N] [--json FILE] [--fast]
[--known lengths|start] [--alone]

--fast draws the mechanisms' noise with numpy: the same laws, for figures that take hundreds of
fits. --known: what a fit is told of the solution (benchmarks.real_tables.known). --alone: also how
often each rule alone declines an interval (benchmarks.real_tables.alone).
"""

import argparse
import json
import math
import time
import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.gauntlet.questions import QuestionFields
from benchmarks.gauntlet.targets import LEAST_WHOLE, almost_noise_free
from benchmarks.noise_free import glm_target
from benchmarks.real_tables.alone import Alone, rules_told
from benchmarks.real_tables.fast import numpy_noise
from benchmarks.real_tables.known import KNOWN, told
from benchmarks.real_tables.lines import QUIET, RealLine, Sample, Z, line
from benchmarks.real_tables.models import MOST, TABLES, RealModel, read_folder
from benchmarks.real_tables.reasons import table
from benchmarks.real_tables.textbook import Textbook, textbook
from reticent_server.errors import InvalidRequest
from reticent_server.kinds.linear_regression import target as linear_target
from reticent_server.kinds.shared.linear.query import LinearRegression
from reticent_server.kinds.shared.target import Target

REPS = 24  # samples of a model


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.real_tables")
    parser.add_argument("--tables", type=Path, default=TABLES, help="folder with models.json")
    parser.add_argument("--reps", type=int, default=REPS)
    parser.add_argument("--eps", type=float, nargs="+", default=[1.0])
    parser.add_argument("--asked", nargs="+", default=["default", "squared"])
    parser.add_argument("--half", type=int, choices=(0, 1), help="every other model")
    parser.add_argument("--only", default="", help="a part of a model's name")
    parser.add_argument("--kind", choices=("linear", "glm"))
    parser.add_argument("--n", type=int, help=f"records of a sample; default at most {MOST}")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--known", choices=KNOWN, default=KNOWN[0])
    return parser.parse_args()


def asked_query(model: RealModel, asked: str):
    """The model's query as `asked`; None where its kind has no such choice."""
    if asked == "default":
        return model.query
    if model.linear:
        return replace(model.query, loss=asked) if asked in {"squared", "tukey"} else None
    return replace(model.query, target=asked) if asked in {"likelihood", "robust"} else None


def own_target(frame, query, n: int, target: Textbook):
    """(q,) the target of the reply itself, on the whole table; the textbook's where that is asked
    for.
    """
    if getattr(query, "target", "") == "likelihood" or getattr(query, "loss", "") == "squared":
        return target.coefficients
    table = frame.repeated(LEAST_WHOLE)
    try:
        solve = linear_target if isinstance(query, LinearRegression) else glm_target
        if getattr(query, "exposure", None) is not None:
            return almost_noise_free(table, query, n).coefficients
        return _solved(solve, table, query).coefficients
    except (InvalidRequest, ValueError, TypeError, np.linalg.LinAlgError):
        return None
    finally:
        table.close()


def _solved(solve, table, query) -> Target:
    return solve.noise_free_fit(table.plan(query, 1.0).planned, table.block())


def model_lines(model: RealModel, frame, given: argparse.Namespace) -> Iterator[RealLine]:
    frame = QuestionFields(model.name, model.table, None, (), model.query).needed(
        frame.of(set(frame.columns))
    )
    if getattr(model.query, "exposure", None):
        frame = _with_exposure(frame, model, given)
    n = given.n or min(frame.n, MOST)
    whole = frame.rows(np.arange(frame.n))
    target = textbook(whole, model.query, n)
    whole.close()
    queries = {a: q for a in given.asked if (q := asked_query(model, a)) is not None}
    own = {a: own_target(frame, q, n, target) for a, q in queries.items()}
    with told(given.known, target.coefficients):
        found = _samples(model, frame, queries, n, given)
    for (asked, epsilon), samples in found.items():
        if given.alone:
            about = target.coefficients if own[asked] is None else own[asked]
            for sample in samples:
                held = np.abs(sample.coefficients - about) <= Z * sample.errors
                widths = sample.errors / target.standard_errors
                given.tally[asked, epsilon].add(sample.ruled, held, widths)
        if samples:
            yield line(asked, model.name, (n, epsilon), samples, own[asked], target)


def _with_exposure(frame, model: RealModel, given: argparse.Namespace):
    whole = _frames(given.tables)(model.table)
    return whole.of(set(frame.columns) | {str(model.query.exposure)})


def _samples(model, frame, queries, n: int, given: argparse.Namespace):
    found = {(a, e): [] for a in queries for e in given.eps}
    seed = zlib.crc32(model.name.encode())
    for k in range(given.reps):
        rng = np.random.default_rng((seed, k))
        rules = rules_told() if given.alone else nullcontext({})
        with numpy_noise(rng, on=given.fast), rules as ruled:
            table = frame.sample(rng, n)
            for (asked, epsilon), samples in found.items():
                plan = table.plan(queries[asked], epsilon)
                result = table.reply(plan)
                if result is not None:
                    sample = Sample.of(result, plan.planned.forecast)
                    samples.append(replace(sample, ruled=dict(ruled)))
            table.close()
    return found


@cache
def _frames(path: Path):
    return cache(read_folder(path).frame)


def summary(lines: Sequence[RealLine]) -> Iterator[str]:
    """Of each way of asking at each ε, over the lines with intervals."""
    for key in dict.fromkeys((x.asked, x.epsilon) for x in lines):
        these = [x for x in lines if (x.asked, x.epsilon) == key]
        told = [x for x in these if x.given > 0]
        held, own = (sum(getattr(x, k) >= 0.90 for x in told) for k in ("textbook", "own"))
        widths = [x.width for x in told]
        quiet = [x.quiet for x in these if not math.isnan(x.quiet)]
        yield (
            f"{key[0]} eps={key[1]:g}: {len(these)} models, {len(told)} with intervals; textbook "
            f">= .90 in {held},"
            f" own in {own}; given {np.mean([x.given for x in these]):.2f}, where a noise below "
            f"{QUIET:g} is forecast {np.mean(quiet) if quiet else math.nan:.2f}; median width"
            f" {np.median(widths) if widths else math.nan:.2f}; wild > .05 in "
            f"{sum(x.wild > 0.05 for x in told)}"
        )


def main() -> None:
    given = arguments()
    folder, lines = read_folder(given.tables), []
    given.tally = defaultdict(Alone)
    for k, model in enumerate(folder.models):
        other = given.half is not None and k % 2 != given.half
        if (
            other
            or given.only not in model.name
            or given.kind == ("glm" if model.linear else "linear")
        ):
            continue
        start = time.perf_counter()
        for each in model_lines(model, _frames(given.tables)(model.table), given):
            lines.append(each)
            print(each.text(), flush=True)
        print(f"    ({time.perf_counter() - start:.0f} s)", flush=True)
        if given.json:
            stored = [{k: None if v != v else v for k, v in x.json().items()} for x in lines]  # noqa: PLR0124 - NaN
            given.json.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    print(*summary(lines), sep="\n")
    print(table([x.json() for x in lines]))
    for (asked, epsilon), found in given.tally.items():
        print(f"{asked} eps={epsilon:g}, by rule", found.table(), sep="\n")


if __name__ == "__main__":
    main()
