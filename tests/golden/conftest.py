"""The scripts here need libraries that the tests do not."""

collect_ignore_glob = ["**/make*.py"]
