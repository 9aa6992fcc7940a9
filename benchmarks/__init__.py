# SPDX-License-Identifier: Apache-2.0
"""Speed and accuracy, against peers; each module prints one JSON line last."""
