"""The server: an ASGI application over ``storage``, and the thread that writes batches.

``settings`` configures it, ``services`` has what every request needs, ``http`` turns declared routes into an
application, ``routes`` are the resources. Only this package imports the web framework.
"""
