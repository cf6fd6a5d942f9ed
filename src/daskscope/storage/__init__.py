"""What a server stores: the catalog in SQL, the rows of finished runs in Parquet, the rest as blobs.

Only this package contains SQL. ``archive`` bundles it all, ``schema`` has every table, ``database`` connects to SQLite
or PostgreSQL, ``ingest`` is the one transaction that makes a batch durable; each other module is named after what it
stores.
"""
