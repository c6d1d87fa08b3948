"""Messages on their way: Celery and kombu, and what their transport keeps in Redis. Nothing else of shared knows them.

- `layout`: the transport's keys, for whoever marks, counts or gives back messages (no Celery, no kombu).
- `envelope`: what an entry of a queue may say, and what of it is believed.
- `transport`: kombu's Redis transport with our reading, our keys and our clock, for our connections alone.
- `publisher`: publishes what the ledger has put into its outbox.
- `app`: the Celery app of a worker.
"""
