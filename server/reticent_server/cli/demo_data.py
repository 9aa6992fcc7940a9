# SPDX-License-Identifier: Apache-2.0
"""The demonstration's private table: the RAND Health Insurance Experiment, as a CSV file."""

from pathlib import Path

from reticent_server.errors import CuratorError

SCHEMA = """\
description: >-
  RAND Health Insurance Experiment: doctor visits of people who were given health insurance at
  random. A row is one person-year; the file names no persons (about 5,900 of them), so the unit is
  the row.
unit: row
columns:
  mdvis:   {kind: integer, lower: 0, upper: 80}    # visits to a medical doctor in the year
  lncoins: {kind: numeric, lower: 0, upper: 4.62}  # ln(coinsurance rate in % + 1)
  idp:     {kind: boolean}                         # plan with an individual deductible
  lpi:     {kind: numeric, lower: 0, upper: 8}     # ln(annual participation incentive)
  fmde:    {kind: numeric, lower: 0, upper: 9}     # ln(maximum medical deductible)
  physlm:  {kind: numeric, lower: 0, upper: 1}     # physical limitation (a share where imputed)
  disea:   {kind: numeric, lower: 0, upper: 60}    # number of chronic diseases
  health:  {kind: categorical, levels: [excellent, good, fair_or_poor]}  # by own account
"""

_LEVELS = ("excellent", "good", "fair_or_poor")
_COLUMNS = ("mdvis", "lncoins", "idp", "lpi", "fmde", "physlm", "disea")


def write_table(csv: Path, schema: Path) -> None:
    """Writes the table that statsmodels ships, and a schema file made from its codebook.

    Its three dummies of health become one factor, fair and poor together: exclusive levels need
    less noise than dummies that might all be 1, and 1.5 % of the rows are too few to be told apart.
    """
    try:
        # Imported here: only the demonstration needs these (the extra [demo]).
        from statsmodels.datasets import randhie  # noqa: PLC0415
    except ImportError:
        raise CuratorError(
            "The demonstration needs `pip install 'reticent-server[demo]'`."
        ) from None
    table = randhie.load_pandas().data
    codes = table["hlthg"] + 2 * (table["hlthf"] + table["hlthp"])
    table["health"] = [_LEVELS[int(code)] for code in codes]
    table.to_csv(csv, columns=[*_COLUMNS, "health"], index=False)
    schema.write_text(SCHEMA, encoding="utf-8")
