# SPDX-License-Identifier: Apache-2.0
"""The analyst's workbench: pages that ask, forecast, run and show releases, over the pipeline that
the interface uses."""
