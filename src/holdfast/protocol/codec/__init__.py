"""From message definitions to encoders and decoders."""
