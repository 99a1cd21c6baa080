"""What a wait looks at: files of the project, and ports of this machine."""
