"""The register of tasks, held to the families that there are."""

import re

import pytest

from pipelines.tasks.register import SERVED_TASKS
from tests.test_architecture import FAMILIES, ROOT


@pytest.mark.parametrize("family", FAMILIES)
def test_the_register_has_a_family_once_and_by_its_own_name(family):
    text = (ROOT / "pipelines/tasks/register.py").read_text(encoding="utf-8")
    name = next(iter(re.findall(rf"from pipelines.tasks.{family}.task import (\w+)", text)), None)
    served = (ROOT / f"pipelines/tasks/{family}/served.py").exists()
    assert (name is not None) == served  # the library serves what has no form of its own
    if name is not None:
        (made,) = [made for made in SERVED_TASKS.values() if made.__self__.__name__ == name]
        assert SERVED_TASKS[made.__self__.name] is made
