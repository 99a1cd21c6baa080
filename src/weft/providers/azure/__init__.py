"""Azure OpenAI: the Responses API of its v1 interface, and Chat Completions of a deployment."""
