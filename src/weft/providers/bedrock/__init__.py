"""Amazon Bedrock: signed requests and AWS event streams; Messages for Anthropic's models, Converse
for all others.
"""
