"""The original's name of a tool: `python -m tools.create_pretraining_data --flags`."""

from tools.table import tool_named

main = tool_named("create_pretraining_data").main

if __name__ == "__main__":
    raise SystemExit(main())
