# SPDX-License-Identifier: Apache-2.0
"""`python -m reticent_server.cli` is `reticent`."""

from reticent_server.cli import main

if __name__ == "__main__":
    main()
