"""What a server keeps: the catalog in SQL, the rows of finished runs in Parquet, the rest as blobs.

Only this package has SQL in it. ``schema`` is every table, ``database`` the connection to SQLite or PostgreSQL, ``ingest`` the
one transaction that makes a batch durable; each other module is named after what it stores.
"""
