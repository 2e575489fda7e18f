"""What the blocking and the asyncio shell share: everything but the I/O.

- `http`, `sse`: requests as values, and parsers that are fed bytes
- `verbs`: the request for each verb of the API
- `exchange`: a conversation as a generator that yields what to do and is sent what came of it
- `launch`: the arguments of subprocess as a start request
- `output`: reading a log by cursor; following it as events
- `place`: which server, and which program starts it
"""
