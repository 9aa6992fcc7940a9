import pytest

from support.client.replying_server import Server


@pytest.fixture
def server() -> Server:
    return Server()
