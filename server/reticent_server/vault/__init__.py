# SPDX-License-Identifier: Apache-2.0
"""Private rows: ingest, and readers that yield them as private record batches; all through ADBC."""
