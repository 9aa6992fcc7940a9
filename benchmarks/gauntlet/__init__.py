# SPDX-License-Identifier: Apache-2.0
"""Ordinary models over real tables: do intervals hold, are forecasts right, are flags and standard
errors sane?

`python -m benchmarks.gauntlet` takes bootstrap samples of a whole table, fits each model to each
sample through planning, the engine and the mechanisms, and compares the replies with what the same
plan's model is without noise on the whole table. `models` lists what is asked, `goals` what is
expected, `known_failures` what falls short.
"""
