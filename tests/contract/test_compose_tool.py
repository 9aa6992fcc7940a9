# SPDX-License-Identifier: Apache-2.0
"""`make packages` starts what the compose file says: how it reads it, and what it gives a
process.
"""

from __future__ import annotations

from pathlib import Path

from tools.packages.boxes import Box, Mount, Network, resolved
from tools.packages.compose import Service, services
from tools.packages.people import commands

from support.documents.code_blocks import ROOT


def read(tmp_path: Path, **given: str) -> dict[str, Service]:
    return services(ROOT, given, tmp_path)


def test_variables_have_their_defaults_or_what_is_given(tmp_path: Path) -> None:
    assert read(tmp_path)["server"].environment["RETICENT_ENGINE"] == "local"
    assert read(tmp_path, RETICENT_ENGINE="dask")["server"].environment["RETICENT_ENGINE"] == "dask"
    words = read(tmp_path, WORKERS="3")["server"].command
    assert words is not None
    assert words[words.index("--workers") + 1] == "3"


def test_mounts_are_of_the_project_of_volumes_and_of_memory(tmp_path: Path) -> None:
    mounts = {mount.target: mount for mount in read(tmp_path)["server"].mounts}
    assert mounts["/var/lib/reticent"] == Mount(tmp_path / "state", "/var/lib/reticent")
    assert mounts["/run/secrets"].source == ROOT / "deploy/secrets/server"
    assert not mounts["/run/secrets"].writable
    assert mounts["/anchors"].writable
    assert mounts["/tmp"] == Mount(None, "/tmp", writable=True, options="size=256m,mode=1777")


def test_who_waits_for_whom_and_for_what(tmp_path: Path) -> None:
    found = read(tmp_path)
    assert found["init"].depends_on == {"db": "service_healthy"}
    assert found["server"].depends_on == {"init": "service_completed_successfully"}
    assert found["worker"].depends_on == {"scheduler": "service_started"}
    assert found["db"].health.test is not None
    assert found["init"].health.disabled
    assert found["server"].health.test is None  # the image's
    assert found["proxy"].capabilities == ("NET_BIND_SERVICE",)


def test_the_database_is_not_healthy_while_its_image_makes_the_roles(tmp_path: Path) -> None:
    """PostgreSQL's image runs its scripts with a server that listens on no network."""
    test = read(tmp_path)["db"].health.test
    assert test is not None
    assert test[test.index("--host") + 1] == "127.0.0.1"


def test_a_box_drops_everything_but_what_is_kept(tmp_path: Path) -> None:
    mounts = (Mount(None, "/tmp"), Mount(tmp_path, "/data"))
    box = Box(
        tmp_path / "root", Network(7), "70:71", "/", {"A": "b c"}, mounts, ("NET_BIND_SERVICE",)
    )
    (tmp_path / "root").mkdir()
    *entering, script = box.command(["serve", "it's"])
    assert entering[:2] == ["nsenter", "--net=/proc/7/ns/net"]
    *mounting, entered = script.splitlines()
    for part in (
        "exec chroot",
        "--reuid 70 --regid 71 --clear-groups",
        "--no-new-privs --inh-caps -all --bounding-set -all,+net_bind_service",
        "'A=b c' serve 'it'\"'\"'s'",
    ):
        assert part in entered
    assert mounting[-1] == f"mount -o remount,bind,ro {tmp_path}/root"
    assert f"mount -o remount,bind,ro {tmp_path}/root/data" in mounting
    assert (tmp_path / "root/data").is_dir()


def test_links_of_a_root_stay_inside(tmp_path: Path) -> None:
    (tmp_path / "var").mkdir()
    (tmp_path / "var/run").symlink_to("/run")
    (tmp_path / "var/lock").symlink_to("../../../etc")
    assert resolved(tmp_path, "/var/run/secrets") == tmp_path / "run/secrets"
    assert resolved(tmp_path, "/a/b") == tmp_path / "a/b"
    assert resolved(tmp_path, "/var/lock/x") == tmp_path / "etc/x"


def test_the_guide_s_commands_are_those_that_are_tried() -> None:
    """Up to names and amounts."""
    guide = (ROOT / "docs/how-to/deploy.md").read_text("utf-8")
    for words in commands("/tables"):
        verb = " ".join(words[:2])
        assert f"docker compose run --rm curator {verb} " in guide, verb
        for option in (word for word in words if word.startswith("--") and word != "--json"):
            assert option in guide
