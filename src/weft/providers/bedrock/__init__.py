"""Amazon Bedrock: Anthropic's models there, with signed requests and AWS event streams."""
