"""Import manifests from published annotations, or from a folder of videos or images."""
