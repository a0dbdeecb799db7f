"""run_pretraining that dies by SIGKILL inside a save, when all is written but the name is not.

`python -m tests.support.killed_while_saving STEP FLAGS...`: the checkpoint of that step stays
half-done: its data are complete, the folder still has its temporary name.
"""

import os
import signal
import sys
from pathlib import Path

from tools.run_pretraining import main


def die_instead_of_renaming(step):
    name, rename = f"step-{step:08d}", Path.rename

    def rename_or_die(path, target):
        if Path(target).name == name:
            os.kill(os.getpid(), signal.SIGKILL)
        return rename(path, target)

    Path.rename = rename_or_die


if __name__ == "__main__":
    die_instead_of_renaming(int(sys.argv[1]))
    sys.exit(main(sys.argv[2:]))
