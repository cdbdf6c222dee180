"""The Embedding Association Test on image-text embeddings (Wolfe et al., FAccT 2023)."""
