"""Between processes: frames, payloads, the handshake, connections and the channels they carry."""
