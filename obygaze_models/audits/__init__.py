"""Bias audits of an embedding space, of captions, and of saliency maps; none of them generates anything."""
