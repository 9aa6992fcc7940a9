import pytest

from support_client import Server


@pytest.fixture
def server() -> Server:
    return Server()
