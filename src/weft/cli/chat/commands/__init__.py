"""The slash commands of the chat, one class for each group of them."""
