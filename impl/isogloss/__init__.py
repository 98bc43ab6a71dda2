"""The server: web layer, dialect handlers, engines."""
