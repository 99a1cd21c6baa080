"""Vertex AI: Google's and Anthropic's models in a project of Google Cloud."""
