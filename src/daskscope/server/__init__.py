"""The server: an ASGI application over ``storage``, and the thread that writes.

``settings`` says how it is run, ``services`` holds what every request needs, ``routing`` turns declared routes into an
application, ``routes`` are the resources. Only this package imports the web framework.
"""
