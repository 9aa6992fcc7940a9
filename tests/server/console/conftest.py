from support.installations.console import desk, history

__all__ = ["desk", "history"]
