"""Messages, as protocol buffers."""
