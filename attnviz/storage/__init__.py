"""Files: read only what is an ordinary file, write whole or not at all, and say plainly what is wrong with JSON."""
