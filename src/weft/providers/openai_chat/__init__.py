"""The Chat Completions API: OpenAI's older one, and the one that most other servers speak."""
