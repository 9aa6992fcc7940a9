"""`reticent`, the program: the command line, or a word about what is not installed."""

import sys


def main() -> None:
    """Runs the command line. A base installation has the client only, and says so."""
    try:
        # Imported here: what is missing is known only by trying.
        from reticent_server.cli import main as run  # noqa: PLC0415
    except ModuleNotFoundError as error:
        sys.exit(
            f"reticent: {error.name} is not installed. This is the client alone (import reticent); the "
            "server and its commands come with: pip install 'reticent[server]'"
        )
    run()
