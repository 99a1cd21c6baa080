"""Programs written for the Claude Agent SDK, which `make oracles` runs on `weft` and on the CLI
that the SDK brings; they are run by other interpreters, and import nothing of ours."""
