"""The original's name of a tool: `python -m tools.run_squad --flags`."""

from tools.table import tool_named

main = tool_named("run_squad").main

if __name__ == "__main__":
    raise SystemExit(main())
