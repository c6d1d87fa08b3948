"""Who was asked: where an endpoint is, what it can do, why it refused, when to ask again, what it costs."""
