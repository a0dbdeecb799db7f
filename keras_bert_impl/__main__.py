"""Runs a tool: `python -m keras_bert_impl TOOL --flags`, which is also the command `keras-bert`.

It is the one module of the library that knows the tools, and nothing imports it. In an installed
package they stand at `keras_bert_impl.tools` (setup.py renames them), so that this name finds them
everywhere, whatever else is called `tools`.
"""

import sys

from tools.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
