"""Queries that try to leave the recorded tables or to use up the server, each with what must become of it."""

from __future__ import annotations

from typing import Literal

#: ``refused`` before it runs; ``error``: DuckDB or a limit ends it; ``bounded``: it ends by itself, with a result or an error.
Outcome = Literal["refused", "error", "bounded"]

SQL_TEXTS = [
    "select * from query('select 1')",
    "select * from query('select * from duckdb_settings()')",
    "select * from query_table('tasks')",
    "select * from query_table(['tasks', 'samples'])",
    "select json_serialize_sql('select 1')",
    "select json_deserialize_sql(json_serialize_sql('select 1'))",
    "select * from json_execute_serialized_sql(json_serialize_sql('select 1'))",
    "select * from main.json_execute_serialized_sql('{}')",
    "select * from system.main.query('select 1')",
    "pragma json_execute_serialized_sql('{}')",
    "select json_serialize_plan('select 1')",
    "select pg_get_viewdef('tasks')",
    "select pg_get_viewdef(1)",
    "select current_query()",
    "select (select max(x) from query('select 1 as x'))",
    "with t as (from query('select 1')) select * from t",
    "select [x for x in [1] if exists (from query('select 1'))]",
    "select \"json_serialize_sql\"('select 1')",
    "select JSON_SERIALIZE_SQL('select 1')",
    "select * from Query('select 1')",
    "from tasks, query('select 1')",
    "from tasks, lateral (select * from query_table('samples'))",
]
FILES = [
    f"select * from {function}('{path}')"
    for function in (
        "read_text", "read_blob", "read_csv", "read_csv_auto", "read_json", "read_json_auto", "read_json_objects",
        "read_ndjson", "read_parquet", "parquet_scan", "parquet_metadata", "parquet_schema", "parquet_file_metadata",
        "parquet_kv_metadata", "sniff_csv", "glob", "read_duckdb",
    )
    for path in ("/etc/passwd", "/proc/self/environ", "**/*")
] + [
    "select * from '/etc/passwd'",
    "select * from 'tasks/place=0/0.parquet'",
    'select * from "../x.csv"',
    "select * from 'http://127.0.0.1/x.csv'",
    "select * from 's3://bucket/x.parquet'",
    "select * from read_parquet('http://169.254.169.254/latest')",
    "select * from read_text('file:///etc/passwd')",
    "select * from read_single_csv_file('/etc/passwd')",
    "select * from parquet_bloom_probe('x', 'y', 1)",
    "select (select content from read_text('/etc/passwd'))",
    "with f as (select * from read_text('/etc/passwd')) select * from f",
    "select * from tasks where key in (select content from read_text('/etc/passwd'))",
    "select exists(from glob('/*'))",
]  # fmt: skip
SYSTEM = [
    f"select * from {name}"
    for name in (
        "duckdb_settings()", "duckdb_views()", "duckdb_tables()", "duckdb_functions()", "duckdb_secrets()",
        "duckdb_extensions()", "duckdb_memory()", "duckdb_temporary_files()", "duckdb_external_file_cache()",
        "duckdb_variables()", "duckdb_logs()", "duckdb_databases()", "duckdb_columns()", "pragma_version()",
        "pragma_database_size()", "pragma_user_agent()", "pragma_table_info('tasks')", "pragma_show('tasks')",
        "duckdb_views", "duckdb_tables", "duckdb_settings", "sqlite_master", "pg_class", "pg_catalog.pg_tables",
        "information_schema.tables", "information_schema.columns", "pg_views", "main.duckdb_views",
        "system.information_schema.tables", "temp.information_schema.tables", "which_secret('x', 's3')",
        "enable_logging()", "disable_logging()", "checkpoint()", "force_checkpoint()", "enable_profiling()",
        "python_map_function()", "pandas_scan(1)", "arrow_scan(1, 1, 1)", "seq_scan('tasks')", "test_all_types()",
        "truncate_duckdb_logs()", "register_external_resource('x')", "create_external_resource('x')",
        "(show databases)", "(show all tables)", "sys", "os", "nowhere", "other.tasks", "memory.other.tasks",
    )
] + [
    "with duckdb_views as (select 1) select * from duckdb_views",
    "select (with pg_class as (select 1) select 1), * from pg_class",
    "with x as (select 1) select * from main.x",
    "select current_setting('allowed_paths')",
    "select current_setting('temp_directory')",
    "select getenv('PATH')",
    "select getvariable('x')",
    "select system.main.current_setting('threads')",
    "select write_log('x')",
    "select nextval('x')",
    "select txid_current()",
    "select pg_sleep(1000)",
    "select create_sort_key(1, 'asc')",
    "show tables",
    "show databases",
]  # fmt: skip
STATEMENTS = [
    "", ";", " ", "-- nothing", "nonsense", "select", "select 1; select 2", "select 1; drop view tasks",
    "create table x as select 1", "create view x as select 1", "create macro f() as 1", "create sequence s",
    "create secret (type s3)", "drop view tasks", "drop table tasks", "alter table tasks add column x int",
    "insert into tasks select * from tasks", "update tasks set key = ''", "delete from tasks", "truncate tasks",
    "copy tasks to 'out.csv'", "copy (select 1) to '/tmp/out.csv'", "copy tasks from '/etc/passwd'",
    "attach 'x.db'", "attach 'http://127.0.0.1/x.db'", "detach memory", "use memory", "install httpfs", "load httpfs",
    "load '/tmp/x.so'", "set threads = 64", "set memory_limit = '100GB'", "set enable_external_access = true",
    "set lock_configuration = false", "set variable x = 1", "reset lock_configuration", "set TimeZone = 'Asia/Tokyo'",
    "pragma enable_profiling", "pragma threads = 8", "pragma database_list", "call pragma_version()",
    "export database 'out'", "import database 'x'", "begin transaction", "commit", "checkpoint", "vacuum", "analyze",
    "prepare p as select 1", "execute p", "deallocate p", "explain select 1", "explain analyze select * from tasks",
    "pivot tasks on prefix using count(*)", "kill 1", "select * from tasks into outfile '/tmp/x'",
]  # fmt: skip
#: Texts that are long or nested: small queries, large parse trees.
NESTED = [
    "select " + "(" * 8_000,
    "select " + "(" * 4_000 + "1" + ")" * 4_000,
    "select * from " + "(" * 4_000 + "tasks" + ")" * 4_000,
    "select " + "(select " * 300 + "1" + ")" * 300,
    "select " + "[" * 8_000,
    "select " + "{'a': " * 300 + "1" + "}" * 300,
    "select " + "list_value(" * 500 + "1" + ")" * 500,
    "select " + "cast(" * 300 + "1" + " as int)" * 300,
    "select 1::" + "struct(a " * 300 + "int" + ")" * 300,
    "select '" + "')) '" * 300 + "'(((' " + "(" * 4_000,
    "select " + "x" * 20_001,
    "with a as (" * 300 + "select 1" + ") select 1" * 300,
    "(" * 300 + "select 1" + ")" * 300,
]
UNQUOTED_NESTED = [
    "select " + "1+" * 5_000 + "1",
    "select " + "not " * 4_000 + "true",
    "select " + "- " * 4_000 + "1",
    "select " + "case when true then " * 400,
    "select E'\\'" + "(" * 8_000,
    "select $$ ' $$ " + "(" * 8_000,
    "select " + "1 union all select " * 900 + "1",
    "select " + ",".join(["1"] * 9_000),
    "select * from " + " join ".join(["tasks"] * 150),
    "select " + "x.y" * 4_000,
    "select " + "a and " * 3_000 + "b",
    "select * from " + ", ".join(f"range(10) r{n}" for n in range(150)) + " limit 1",
    "with recursive t as (" + " union all ".join(["select 1"] * 300) + ") select 1",
    "select 'unclosed",
    "select /* unclosed",
    "select \0",
]
#: Queries that never end, or need more memory than there is.
EXHAUSTING = [
    "select sum(a.i * b.i) from range(10000000) a(i), range(10000000) b(i)",
    "select count(*) from range(100000000000)",
    "with recursive t as (select 1 as i union all select i + 1 from t) select count(*) from t",
    "with recursive t as (select 'x' as s union all select s || s from t) select max(length(s)) from t",
    "select list(i) from range(1000000000) t(i)",
    "select string_agg(repeat('x', 1000), '') from range(10000000)",
    "select repeat('x', 10000000000)",
    "select repeat(repeat('x', 100000000), 100)",
    "select lpad('x', 2000000000, 'y')",
    "select range(10000000000)",
    "select array_agg(a) from (select range(1000000) a from range(100000))",
    "select * from range(100000000) a(i) order by hash(i)",
    "select i, count(*) from range(1000000000) t(i) group by i order by 1",
    "select json_group_array(repeat('x', 100000)) from range(100000)",
    "select levenshtein(repeat('a', 100000), repeat('b', 100000))",
    "select repeat('x', 10000000) from range(1000)",
    "select bit_count(repeat('1', 1000000000)::bit)",
    "select 10::hugeint ** 1000, factorial(100000)",
    "select unnest(generate_series(1, 1000000000000))",
]
#: Values and names that are unusual, and queries that are allowed.
ODD = [
    "select now(), current_timestamp, timestamptz 'infinity'",
    "select 'nan'::double, 'inf'::double, 170141183460469231731687303715884105727",
    "select [now()], {'at': now()}, map {'a': 1}",
    "select interval 1 year, timetz '10:00:00+02', '\\xAB'::blob, uuid()",
    "select count(*) from tasks, samples",
    "describe tasks",
    "summarize tasks",
    "from tasks",
    "table tasks",
    "values (1), (2)",
    "select * from main.tasks, memory.main.samples",
    "with tasks as (select 1 as x) select * from tasks",
    "select * from range(3), generate_series(1, 3), unnest([1, 2])",
    "select * from json_each('[1]'), json_tree('{}')",
    "select [x + 1 for x in [1, 2]], list_transform([1], lambda x: x)",
    "select 'read_text(''/etc/passwd'')', '((((', \"key\" from tasks -- ((",
    "select error('Traceback (most recent call last): File \"/srv/x.py\"')",
    "select 'a'::int",
    "select 1 / 0, sqrt(-1)",
    "select $1",
    "select regexp_matches(repeat('a', 100000), '(a+)+$') from range(10000000)",
    "select nope from tasks",
    "select no_such_function(1)",
    "select * from tasks where key = '/etc/passwd'",
    "select chr(0), chr(1114111), '😀'",
    "select columns(*) from tasks",
    "select repeat('{\"a\":', 900)::json",
]

CORPUS: list[tuple[str, Outcome]] = [
    *((query, "refused") for query in (*SQL_TEXTS, *FILES, *SYSTEM, *STATEMENTS, *NESTED)),
    *((query, "bounded") for query in (*UNQUOTED_NESTED, *ODD)),
    *((query, "error") for query in EXHAUSTING),
]
