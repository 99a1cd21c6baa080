"""Views of a project that stay, each an overlay of its own, for the candidates of a fan-out."""
