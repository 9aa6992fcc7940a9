from support_console import desk, history

__all__ = ["desk", "history"]
