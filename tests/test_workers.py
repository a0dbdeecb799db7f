import pytest

from tests.support.workers import free_memory, workers_that_fit

GIB = 1 << 30


def machine(folder, available, limit=None, used=0, version=2):
    (folder / "proc").mkdir()
    (folder / "proc/meminfo").write_text(
        f"MemTotal: {99 * GIB >> 10} kB\nMemAvailable: {available >> 10} kB\nHugePages_Free: 0\n"
    )
    cgroup = folder / "sys/fs/cgroup" / ("memory" if version == 1 else "")
    cgroup.mkdir(parents=True)
    if limit is not None:
        names = ("limit_in_bytes", "usage_in_bytes") if version == 1 else ("max", "current")
        for name, value in zip(names, (limit, used), strict=True):
            (cgroup / f"memory.{name}").write_text(f"{value}\n")
        (cgroup / "memory.stat").write_text(f"anon 7\ninactive_file {GIB}\n")
    return folder


@pytest.mark.parametrize(
    ("cores", "memory", "workers"),
    [
        (8, {"available": 14 * GIB}, 6),  # a laptop of 16 GB
        (2, {"available": 14 * GIB}, 2),
        (8, {"available": GIB}, 1),
        (64, {"available": 90 * GIB, "limit": 16 * GIB, "used": 3 * GIB}, 6),  # 2 of 3 are taken
        (64, {"available": 90 * GIB, "limit": 16 * GIB, "used": 3 * GIB, "version": 1}, 6),
        (16, {"available": 90 * GIB, "limit": "max"}, 16),
        (16, {"available": 90 * GIB, "limit": 2**63 - 4096, "version": 1}, 16),
    ],
)
def test_there_are_no_more_workers_than_cores_and_free_memory_bear(
    cores, memory, workers, tmp_path
):
    assert workers_that_fit(cores, machine(tmp_path, **memory)) == workers


def test_where_nobody_knows_the_memory_the_cores_count(tmp_path):
    assert workers_that_fit(5, tmp_path) == 5


def test_this_machine_has_some_free_memory():
    assert free_memory() is None or free_memory() > 1e7
