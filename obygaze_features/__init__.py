"""Features of frozen video backbones: extracted once, kept in stores, shared between labs."""
