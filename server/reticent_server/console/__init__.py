# SPDX-License-Identifier: Apache-2.0
"""The curator's console: server-rendered pages at /console over public facts and the ledger.

It holds no way to a private row: what it shows, and what it changes (keys, grants, budgets), goes
through access, catalogue and ledger.
"""
