# SPDX-License-Identifier: Apache-2.0
from support.installations.bench import bench

__all__ = ["bench"]
