"""The original's name of a tool: `python -m tools.extract_features --flags`."""

from tools.table import tool_named

main = tool_named("extract_features").main

if __name__ == "__main__":
    raise SystemExit(main())
