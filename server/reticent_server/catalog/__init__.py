# SPDX-License-Identifier: Apache-2.0
"""Public metadata: schemas, versions, populations, policies and released profiles."""
