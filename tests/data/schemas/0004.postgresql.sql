CREATE TABLE public.account_keys (
    id bigint NOT NULL,
    account_id bigint NOT NULL,
    wrapped bytea NOT NULL,
    created_us bigint DEFAULT '0'::bigint NOT NULL
);
CREATE SEQUENCE public.account_keys_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.account_keys_id_seq OWNED BY public.account_keys.id;
CREATE TABLE public.accounts (
    id bigint NOT NULL,
    name text NOT NULL,
    created_us bigint DEFAULT '0'::bigint NOT NULL,
    preferences text DEFAULT ''::text NOT NULL,
    last_report bigint DEFAULT '0'::bigint NOT NULL
);
CREATE SEQUENCE public.accounts_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.accounts_id_seq OWNED BY public.accounts.id;
CREATE TABLE public.activities (
    run_id bigint NOT NULL,
    span text NOT NULL,
    context text NOT NULL,
    prefix text NOT NULL,
    activity text NOT NULL,
    unit text NOT NULL,
    value double precision DEFAULT '0'::double precision NOT NULL
);
CREATE TABLE public.alembic_version (
    version_num character varying(32) NOT NULL
);
CREATE TABLE public.attempts (
    subject text NOT NULL,
    tries bigint DEFAULT '0'::bigint NOT NULL,
    since_us bigint DEFAULT '0'::bigint NOT NULL
);
CREATE TABLE public.batches (
    id bigint NOT NULL,
    run_id bigint NOT NULL,
    epoch bigint NOT NULL,
    sequence bigint NOT NULL,
    name text NOT NULL,
    rows bigint DEFAULT '0'::bigint NOT NULL,
    t0 bigint DEFAULT '0'::bigint NOT NULL,
    t1 bigint DEFAULT '0'::bigint NOT NULL,
    kept bigint DEFAULT '0'::bigint NOT NULL,
    dropped bigint DEFAULT '0'::bigint NOT NULL,
    received_us bigint DEFAULT '0'::bigint NOT NULL,
    frame bytea,
    damage text DEFAULT ''::text NOT NULL
);
CREATE SEQUENCE public.batches_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.batches_id_seq OWNED BY public.batches.id;
CREATE TABLE public.clients (
    run_id bigint NOT NULL,
    client text NOT NULL,
    seen_us bigint DEFAULT '0'::bigint NOT NULL,
    connect_us bigint DEFAULT '0'::bigint NOT NULL,
    last_seen_us bigint DEFAULT '0'::bigint NOT NULL,
    disconnect_us bigint DEFAULT '0'::bigint NOT NULL,
    held_keys bigint DEFAULT '0'::bigint NOT NULL,
    held_nbytes bigint DEFAULT '0'::bigint NOT NULL
);
CREATE TABLE public.computations (
    run_id bigint NOT NULL,
    computation text NOT NULL,
    account_id bigint NOT NULL,
    seen_us bigint DEFAULT '0'::bigint NOT NULL,
    start_us bigint DEFAULT '0'::bigint NOT NULL,
    stop_us bigint DEFAULT '0'::bigint NOT NULL,
    state text DEFAULT ''::text NOT NULL,
    client text DEFAULT ''::text NOT NULL,
    span text DEFAULT ''::text NOT NULL,
    sealed_code bytea,
    code_line bigint DEFAULT '0'::bigint NOT NULL,
    code_file text DEFAULT ''::text NOT NULL,
    submissions bigint DEFAULT '0'::bigint NOT NULL,
    groups bigint DEFAULT '0'::bigint NOT NULL,
    tasks bigint DEFAULT '0'::bigint NOT NULL,
    memory bigint DEFAULT '0'::bigint NOT NULL,
    erred bigint DEFAULT '0'::bigint NOT NULL,
    released bigint DEFAULT '0'::bigint NOT NULL,
    forgotten bigint DEFAULT '0'::bigint NOT NULL,
    unfinished bigint DEFAULT '0'::bigint NOT NULL,
    code_digest text DEFAULT ''::text NOT NULL
);
CREATE TABLE public.days (
    run_id bigint NOT NULL,
    day integer NOT NULL,
    prefix text NOT NULL,
    account_id bigint NOT NULL,
    tasks bigint DEFAULT '0'::bigint NOT NULL,
    errors bigint DEFAULT '0'::bigint NOT NULL,
    compute_us bigint DEFAULT '0'::bigint NOT NULL,
    transfer_us bigint DEFAULT '0'::bigint NOT NULL,
    nbytes bigint DEFAULT '0'::bigint NOT NULL
);
CREATE TABLE public.epochs (
    run_id bigint NOT NULL,
    epoch bigint NOT NULL,
    floor bigint DEFAULT '0'::bigint NOT NULL,
    highest bigint DEFAULT '0'::bigint NOT NULL,
    lowest bigint DEFAULT '0'::bigint NOT NULL,
    taken bigint DEFAULT '0'::bigint NOT NULL,
    from_start bigint DEFAULT '0'::bigint NOT NULL
);
CREATE TABLE public.error_groups (
    account_id bigint NOT NULL,
    fingerprint text NOT NULL,
    type text DEFAULT ''::text NOT NULL,
    sealed_sample bytea,
    first_us bigint DEFAULT '0'::bigint NOT NULL,
    last_us bigint DEFAULT '0'::bigint NOT NULL,
    count bigint DEFAULT '0'::bigint NOT NULL,
    state text DEFAULT 'open'::text NOT NULL,
    state_us bigint DEFAULT '0'::bigint NOT NULL,
    state_by text DEFAULT ''::text NOT NULL
);
CREATE TABLE public.exceptions (
    id bigint NOT NULL,
    account_id bigint NOT NULL,
    run_id bigint NOT NULL,
    fingerprint text DEFAULT ''::text NOT NULL,
    time_us bigint DEFAULT '0'::bigint NOT NULL,
    key text DEFAULT ''::text NOT NULL,
    prefix text DEFAULT ''::text NOT NULL,
    span text DEFAULT ''::text NOT NULL,
    computation text DEFAULT ''::text NOT NULL,
    worker text DEFAULT ''::text NOT NULL,
    type text DEFAULT ''::text NOT NULL,
    cause_type text DEFAULT ''::text NOT NULL,
    sealed_text bytea,
    will_retry bigint DEFAULT '0'::bigint NOT NULL,
    count bigint DEFAULT '0'::bigint NOT NULL,
    "user" text DEFAULT ''::text NOT NULL
);
CREATE SEQUENCE public.exceptions_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.exceptions_id_seq OWNED BY public.exceptions.id;
CREATE TABLE public.facts (
    name text NOT NULL,
    value text DEFAULT ''::text NOT NULL
);
CREATE TABLE public.files (
    id bigint NOT NULL,
    run_id bigint NOT NULL,
    name text NOT NULL,
    path text NOT NULL,
    rows bigint DEFAULT '0'::bigint NOT NULL,
    nbytes bigint DEFAULT '0'::bigint NOT NULL,
    t0 bigint DEFAULT '0'::bigint NOT NULL,
    t1 bigint DEFAULT '0'::bigint NOT NULL,
    created_us bigint DEFAULT '0'::bigint NOT NULL
);
CREATE SEQUENCE public.files_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.files_id_seq OWNED BY public.files.id;
CREATE TABLE public.logins (
    device_digest text NOT NULL,
    user_code text NOT NULL,
    label text DEFAULT ''::text NOT NULL,
    created_us bigint DEFAULT '0'::bigint NOT NULL,
    expires_us bigint DEFAULT '0'::bigint NOT NULL,
    user_id bigint,
    account_id bigint,
    state text DEFAULT ''::text NOT NULL
);
CREATE TABLE public.members (
    account_id bigint NOT NULL,
    user_id bigint NOT NULL,
    role text DEFAULT ''::text NOT NULL,
    since_us bigint DEFAULT '0'::bigint NOT NULL
);
CREATE TABLE public.memories (
    run_id bigint NOT NULL,
    worker text NOT NULL,
    time_us bigint DEFAULT '0'::bigint NOT NULL,
    memory bigint DEFAULT '0'::bigint NOT NULL,
    cpu_percent double precision DEFAULT '0'::double precision NOT NULL
);
CREATE TABLE public.prefixes (
    run_id bigint NOT NULL,
    computation text NOT NULL,
    prefix text NOT NULL,
    tasks bigint DEFAULT '0'::bigint NOT NULL,
    errors bigint DEFAULT '0'::bigint NOT NULL,
    retried bigint DEFAULT '0'::bigint NOT NULL,
    killed bigint DEFAULT '0'::bigint NOT NULL,
    compute_us bigint DEFAULT '0'::bigint NOT NULL,
    transfer_us bigint DEFAULT '0'::bigint NOT NULL,
    disk_us bigint DEFAULT '0'::bigint NOT NULL,
    deserialize_us bigint DEFAULT '0'::bigint NOT NULL,
    nbytes bigint DEFAULT '0'::bigint NOT NULL,
    first_us bigint DEFAULT '0'::bigint NOT NULL,
    last_us bigint DEFAULT '0'::bigint NOT NULL,
    longest_us bigint DEFAULT '0'::bigint NOT NULL
);
CREATE TABLE public.renderings (
    run_id bigint NOT NULL,
    subject text NOT NULL,
    path text NOT NULL,
    nbytes bigint DEFAULT '0'::bigint NOT NULL,
    created_us bigint DEFAULT '0'::bigint NOT NULL,
    upto bigint DEFAULT '0'::bigint NOT NULL,
    version text DEFAULT ''::text NOT NULL
);
CREATE TABLE public.reports (
    id bigint NOT NULL,
    account_id bigint NOT NULL,
    number bigint DEFAULT '0'::bigint NOT NULL,
    share text DEFAULT ''::text NOT NULL,
    user_id bigint,
    filename text DEFAULT ''::text NOT NULL,
    title text DEFAULT ''::text NOT NULL,
    tags text DEFAULT ''::text NOT NULL,
    visibility text DEFAULT ''::text NOT NULL,
    kind text DEFAULT ''::text NOT NULL,
    path text DEFAULT ''::text NOT NULL,
    html_path text DEFAULT ''::text NOT NULL,
    nbytes bigint DEFAULT '0'::bigint NOT NULL,
    created_us bigint DEFAULT '0'::bigint NOT NULL,
    expires_us bigint DEFAULT '0'::bigint NOT NULL,
    cluster text DEFAULT ''::text NOT NULL,
    status text DEFAULT ''::text NOT NULL,
    duration_us bigint DEFAULT '0'::bigint NOT NULL,
    tasks bigint DEFAULT '0'::bigint NOT NULL,
    errors bigint DEFAULT '0'::bigint NOT NULL
);
CREATE SEQUENCE public.reports_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.reports_id_seq OWNED BY public.reports.id;
CREATE TABLE public.runs (
    id bigint NOT NULL,
    account_id bigint NOT NULL,
    cluster text NOT NULL,
    name text DEFAULT ''::text NOT NULL,
    "user" text DEFAULT ''::text NOT NULL,
    host text DEFAULT ''::text NOT NULL,
    address text DEFAULT ''::text NOT NULL,
    tags text DEFAULT ''::text NOT NULL,
    created_us bigint DEFAULT '0'::bigint NOT NULL,
    received_us bigint DEFAULT '0'::bigint NOT NULL,
    seen_us bigint DEFAULT '0'::bigint NOT NULL,
    start_us bigint DEFAULT '0'::bigint NOT NULL,
    recording_us bigint DEFAULT '0'::bigint NOT NULL,
    end_us bigint DEFAULT '0'::bigint NOT NULL,
    end_reason text DEFAULT ''::text NOT NULL,
    clock_offset_us bigint DEFAULT '0'::bigint NOT NULL,
    idle_since_us bigint DEFAULT '0'::bigint NOT NULL,
    idle_timeout_s double precision DEFAULT '0'::double precision NOT NULL,
    tasks_queued bigint DEFAULT '0'::bigint NOT NULL,
    tasks_processing bigint DEFAULT '0'::bigint NOT NULL,
    tasks_unrunnable bigint DEFAULT '0'::bigint NOT NULL,
    workers bigint DEFAULT '0'::bigint NOT NULL,
    threads bigint DEFAULT '0'::bigint NOT NULL,
    tasks bigint DEFAULT '0'::bigint NOT NULL,
    errors bigint DEFAULT '0'::bigint NOT NULL,
    compute_us bigint DEFAULT '0'::bigint NOT NULL,
    transfer_us bigint DEFAULT '0'::bigint NOT NULL,
    disk_us bigint DEFAULT '0'::bigint NOT NULL,
    nbytes bigint DEFAULT '0'::bigint NOT NULL,
    exceptions bigint DEFAULT '0'::bigint NOT NULL,
    last_work_us bigint DEFAULT '0'::bigint NOT NULL,
    tasks_removed bigint DEFAULT '0'::bigint NOT NULL,
    rows bigint DEFAULT '0'::bigint NOT NULL,
    wire_nbytes bigint DEFAULT '0'::bigint NOT NULL,
    thread_us bigint DEFAULT '0'::bigint NOT NULL,
    memory_byte_s double precision DEFAULT '0'::double precision NOT NULL,
    memory bigint DEFAULT '0'::bigint NOT NULL,
    memory_limit bigint DEFAULT '0'::bigint NOT NULL,
    computations bigint DEFAULT '0'::bigint NOT NULL,
    buffered_nbytes bigint DEFAULT '0'::bigint NOT NULL,
    compacted_us bigint DEFAULT '0'::bigint NOT NULL,
    close_us bigint DEFAULT '0'::bigint NOT NULL,
    prices text DEFAULT ''::text NOT NULL,
    unrunnable_needs text DEFAULT ''::text NOT NULL,
    dropped text DEFAULT ''::text NOT NULL,
    platform text DEFAULT ''::text NOT NULL,
    versions text DEFAULT ''::text NOT NULL,
    config text DEFAULT ''::text NOT NULL,
    peak_workers bigint DEFAULT '0'::bigint NOT NULL,
    peak_threads bigint DEFAULT '0'::bigint NOT NULL,
    peak_memory_limit bigint DEFAULT '0'::bigint NOT NULL
);
CREATE SEQUENCE public.runs_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.runs_id_seq OWNED BY public.runs.id;
CREATE TABLE public.sessions (
    digest text NOT NULL,
    user_id bigint NOT NULL,
    created_us bigint DEFAULT '0'::bigint NOT NULL,
    expires_us bigint DEFAULT '0'::bigint NOT NULL,
    agent text DEFAULT ''::text NOT NULL
);
CREATE TABLE public.streams (
    run_id bigint NOT NULL,
    epoch bigint NOT NULL,
    name text NOT NULL,
    rows bigint DEFAULT '0'::bigint NOT NULL,
    kept bigint DEFAULT '0'::bigint NOT NULL,
    dropped bigint DEFAULT '0'::bigint NOT NULL,
    first bigint DEFAULT '0'::bigint NOT NULL,
    dropped_before bigint DEFAULT '0'::bigint NOT NULL
);
CREATE TABLE public.timeline (
    run_id bigint NOT NULL,
    bucket bigint NOT NULL,
    tasks bigint DEFAULT '0'::bigint NOT NULL,
    errors bigint DEFAULT '0'::bigint NOT NULL,
    compute_us bigint DEFAULT '0'::bigint NOT NULL,
    transfer_us bigint DEFAULT '0'::bigint NOT NULL
);
CREATE TABLE public.tokens (
    id bigint NOT NULL,
    account_id bigint NOT NULL,
    user_id bigint NOT NULL,
    digest text NOT NULL,
    hint text DEFAULT ''::text NOT NULL,
    label text DEFAULT ''::text NOT NULL,
    scopes text DEFAULT ''::text NOT NULL,
    cluster text DEFAULT ''::text NOT NULL,
    created_us bigint DEFAULT '0'::bigint NOT NULL,
    expires_us bigint DEFAULT '0'::bigint NOT NULL,
    used_us bigint DEFAULT '0'::bigint NOT NULL,
    revoked_us bigint DEFAULT '0'::bigint NOT NULL,
    parent bigint DEFAULT '0'::bigint NOT NULL
);
CREATE SEQUENCE public.tokens_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.tokens_id_seq OWNED BY public.tokens.id;
CREATE TABLE public.users (
    id bigint NOT NULL,
    name text NOT NULL,
    email text DEFAULT ''::text NOT NULL,
    password text DEFAULT ''::text NOT NULL,
    created_us bigint DEFAULT '0'::bigint NOT NULL,
    disabled_us bigint DEFAULT '0'::bigint NOT NULL,
    admin bigint DEFAULT '0'::bigint NOT NULL
);
CREATE SEQUENCE public.users_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.users_id_seq OWNED BY public.users.id;
CREATE TABLE public.workers (
    run_id bigint NOT NULL,
    server_id text NOT NULL,
    worker text DEFAULT ''::text NOT NULL,
    name text DEFAULT ''::text NOT NULL,
    host text DEFAULT ''::text NOT NULL,
    seen_us bigint DEFAULT '0'::bigint NOT NULL,
    nthreads bigint DEFAULT '0'::bigint NOT NULL,
    memory_limit bigint DEFAULT '0'::bigint NOT NULL,
    start_us bigint DEFAULT '0'::bigint NOT NULL,
    end_us bigint DEFAULT '0'::bigint NOT NULL,
    verdict text DEFAULT ''::text NOT NULL,
    evidence text DEFAULT ''::text NOT NULL,
    processing_count bigint DEFAULT '0'::bigint NOT NULL,
    lost_count bigint DEFAULT '0'::bigint NOT NULL
);
ALTER TABLE ONLY public.account_keys ALTER COLUMN id SET DEFAULT nextval('public.account_keys_id_seq'::regclass);
ALTER TABLE ONLY public.accounts ALTER COLUMN id SET DEFAULT nextval('public.accounts_id_seq'::regclass);
ALTER TABLE ONLY public.batches ALTER COLUMN id SET DEFAULT nextval('public.batches_id_seq'::regclass);
ALTER TABLE ONLY public.exceptions ALTER COLUMN id SET DEFAULT nextval('public.exceptions_id_seq'::regclass);
ALTER TABLE ONLY public.files ALTER COLUMN id SET DEFAULT nextval('public.files_id_seq'::regclass);
ALTER TABLE ONLY public.reports ALTER COLUMN id SET DEFAULT nextval('public.reports_id_seq'::regclass);
ALTER TABLE ONLY public.runs ALTER COLUMN id SET DEFAULT nextval('public.runs_id_seq'::regclass);
ALTER TABLE ONLY public.tokens ALTER COLUMN id SET DEFAULT nextval('public.tokens_id_seq'::regclass);
ALTER TABLE ONLY public.users ALTER COLUMN id SET DEFAULT nextval('public.users_id_seq'::regclass);
INSERT INTO public.accounts VALUES (1, 'acme', 0, '', 0);
INSERT INTO public.alembic_version VALUES ('0004');
INSERT INTO public.computations VALUES (1, 'c', 1, 0, 5, 0, 'done', '', '', NULL, 0, '', 0, 0, 0, 0, 0, 0, 0, 0, '');
INSERT INTO public.runs VALUES (1, 1, 'old', '', '', '', '', '', 0, 0, 0, 0, 0, 0, '', 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '', '', '', '', '', '', 2, 5, 250);
INSERT INTO public.runs VALUES (2, 1, 'hostile', '', '', '', '', '', 0, 0, 0, 0, 0, 0, '', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '', '', '', '', '', '', 2, 9007199254740992, 2);
INSERT INTO public.runs VALUES (3, 1, 'without workers', '', '', '', '', '', 0, 0, 0, 0, 0, 0, '', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '', '', '', '', '', '', 0, 0, 0);
INSERT INTO public.tokens VALUES (1, 1, 1, 'd', '', '', '', '', 0, 0, 0, 0, 0);
INSERT INTO public.users VALUES (1, 'ann', '', '', 0, 0, 0);
INSERT INTO public.workers VALUES (1, 'a', '', '', '', 0, 2, 100, 10, 20, '', '', 0, 0);
INSERT INTO public.workers VALUES (1, 'b', '', '', '', 0, 4, 200, 20, 40, '', '', 0, 0);
INSERT INTO public.workers VALUES (1, 'c', '', '', '', 0, 1, 50, 30, 0, '', '', 0, 0);
INSERT INTO public.workers VALUES (2, 'd', '', '', '', 0, 9007199254740992, 1, 1, 2, '', '', 0, 0);
INSERT INTO public.workers VALUES (2, 'e', '', '', '', 0, 9007199254740992, 1, 1, 2, '', '', 0, 0);
SELECT pg_catalog.setval('public.account_keys_id_seq', 1, false);
SELECT pg_catalog.setval('public.accounts_id_seq', 1, false);
SELECT pg_catalog.setval('public.batches_id_seq', 1, false);
SELECT pg_catalog.setval('public.exceptions_id_seq', 1, false);
SELECT pg_catalog.setval('public.files_id_seq', 1, false);
SELECT pg_catalog.setval('public.reports_id_seq', 1, false);
SELECT pg_catalog.setval('public.runs_id_seq', 1, false);
SELECT pg_catalog.setval('public.tokens_id_seq', 1, false);
SELECT pg_catalog.setval('public.users_id_seq', 1, false);
ALTER TABLE ONLY public.alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);
ALTER TABLE ONLY public.account_keys
    ADD CONSTRAINT pk_account_keys PRIMARY KEY (id);
ALTER TABLE ONLY public.accounts
    ADD CONSTRAINT pk_accounts PRIMARY KEY (id);
ALTER TABLE ONLY public.activities
    ADD CONSTRAINT pk_activities PRIMARY KEY (run_id, span, context, prefix, activity, unit);
ALTER TABLE ONLY public.attempts
    ADD CONSTRAINT pk_attempts PRIMARY KEY (subject);
ALTER TABLE ONLY public.batches
    ADD CONSTRAINT pk_batches PRIMARY KEY (id);
ALTER TABLE ONLY public.clients
    ADD CONSTRAINT pk_clients PRIMARY KEY (run_id, client);
ALTER TABLE ONLY public.computations
    ADD CONSTRAINT pk_computations PRIMARY KEY (run_id, computation);
ALTER TABLE ONLY public.days
    ADD CONSTRAINT pk_days PRIMARY KEY (run_id, day, prefix);
ALTER TABLE ONLY public.epochs
    ADD CONSTRAINT pk_epochs PRIMARY KEY (run_id, epoch);
ALTER TABLE ONLY public.error_groups
    ADD CONSTRAINT pk_error_groups PRIMARY KEY (account_id, fingerprint);
ALTER TABLE ONLY public.exceptions
    ADD CONSTRAINT pk_exceptions PRIMARY KEY (id);
ALTER TABLE ONLY public.facts
    ADD CONSTRAINT pk_facts PRIMARY KEY (name);
ALTER TABLE ONLY public.files
    ADD CONSTRAINT pk_files PRIMARY KEY (id);
ALTER TABLE ONLY public.logins
    ADD CONSTRAINT pk_logins PRIMARY KEY (device_digest);
ALTER TABLE ONLY public.members
    ADD CONSTRAINT pk_members PRIMARY KEY (account_id, user_id);
ALTER TABLE ONLY public.memories
    ADD CONSTRAINT pk_memories PRIMARY KEY (run_id, worker);
ALTER TABLE ONLY public.prefixes
    ADD CONSTRAINT pk_prefixes PRIMARY KEY (run_id, computation, prefix);
ALTER TABLE ONLY public.renderings
    ADD CONSTRAINT pk_renderings PRIMARY KEY (run_id, subject);
ALTER TABLE ONLY public.reports
    ADD CONSTRAINT pk_reports PRIMARY KEY (id);
ALTER TABLE ONLY public.runs
    ADD CONSTRAINT pk_runs PRIMARY KEY (id);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT pk_sessions PRIMARY KEY (digest);
ALTER TABLE ONLY public.streams
    ADD CONSTRAINT pk_streams PRIMARY KEY (run_id, epoch, name);
ALTER TABLE ONLY public.timeline
    ADD CONSTRAINT pk_timeline PRIMARY KEY (run_id, bucket);
ALTER TABLE ONLY public.tokens
    ADD CONSTRAINT pk_tokens PRIMARY KEY (id);
ALTER TABLE ONLY public.users
    ADD CONSTRAINT pk_users PRIMARY KEY (id);
ALTER TABLE ONLY public.workers
    ADD CONSTRAINT pk_workers PRIMARY KEY (run_id, server_id);
ALTER TABLE ONLY public.accounts
    ADD CONSTRAINT uq_accounts_name UNIQUE (name);
ALTER TABLE ONLY public.batches
    ADD CONSTRAINT uq_batches_run_id_epoch_sequence UNIQUE (run_id, epoch, sequence);
ALTER TABLE ONLY public.files
    ADD CONSTRAINT uq_files_path UNIQUE (path);
ALTER TABLE ONLY public.logins
    ADD CONSTRAINT uq_logins_user_code UNIQUE (user_code);
ALTER TABLE ONLY public.renderings
    ADD CONSTRAINT uq_renderings_path UNIQUE (path);
ALTER TABLE ONLY public.reports
    ADD CONSTRAINT uq_reports_account_id_number UNIQUE (account_id, number);
ALTER TABLE ONLY public.runs
    ADD CONSTRAINT uq_runs_account_id_cluster UNIQUE (account_id, cluster);
ALTER TABLE ONLY public.tokens
    ADD CONSTRAINT uq_tokens_digest UNIQUE (digest);
ALTER TABLE ONLY public.users
    ADD CONSTRAINT uq_users_name UNIQUE (name);
CREATE INDEX ix_account_keys_account_id ON public.account_keys USING btree (account_id);
CREATE INDEX ix_computations_account_id_code_digest_start_us ON public.computations USING btree (account_id, code_digest, start_us);
CREATE INDEX ix_computations_account_id_seen_us ON public.computations USING btree (account_id, seen_us);
CREATE INDEX ix_computations_account_id_start_us ON public.computations USING btree (account_id, start_us);
CREATE INDEX ix_computations_run_id_start_us ON public.computations USING btree (run_id, start_us);
CREATE INDEX ix_days_account_id_day ON public.days USING btree (account_id, day);
CREATE INDEX ix_error_groups_account_id_last_us ON public.error_groups USING btree (account_id, last_us);
CREATE INDEX ix_exceptions_account_id_fingerprint_time_us ON public.exceptions USING btree (account_id, fingerprint, time_us);
CREATE INDEX ix_exceptions_account_id_fingerprint_user_run_id ON public.exceptions USING btree (account_id, fingerprint, "user", run_id);
CREATE INDEX ix_exceptions_account_id_time_us ON public.exceptions USING btree (account_id, time_us);
CREATE INDEX ix_exceptions_run_id_time_us ON public.exceptions USING btree (run_id, time_us);
CREATE INDEX ix_files_run_id_name ON public.files USING btree (run_id, name);
CREATE INDEX ix_members_user_id ON public.members USING btree (user_id);
CREATE INDEX ix_reports_share ON public.reports USING btree (share);
CREATE INDEX ix_runs_account_id_start_us ON public.runs USING btree (account_id, start_us);
CREATE INDEX ix_runs_buffered_nbytes ON public.runs USING btree (buffered_nbytes);
CREATE INDEX ix_runs_state ON public.runs USING btree (account_id, received_us, end_us, idle_since_us);
CREATE INDEX ix_tokens_account_id_user_id ON public.tokens USING btree (account_id, user_id);
CREATE INDEX ix_tokens_parent ON public.tokens USING btree (parent);
ALTER TABLE ONLY public.account_keys
    ADD CONSTRAINT fk_account_keys_account_id FOREIGN KEY (account_id) REFERENCES public.accounts(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.activities
    ADD CONSTRAINT fk_activities_run_id FOREIGN KEY (run_id) REFERENCES public.runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.batches
    ADD CONSTRAINT fk_batches_run_id FOREIGN KEY (run_id) REFERENCES public.runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.clients
    ADD CONSTRAINT fk_clients_run_id FOREIGN KEY (run_id) REFERENCES public.runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.computations
    ADD CONSTRAINT fk_computations_account_id FOREIGN KEY (account_id) REFERENCES public.accounts(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.computations
    ADD CONSTRAINT fk_computations_run_id FOREIGN KEY (run_id) REFERENCES public.runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.days
    ADD CONSTRAINT fk_days_account_id FOREIGN KEY (account_id) REFERENCES public.accounts(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.days
    ADD CONSTRAINT fk_days_run_id FOREIGN KEY (run_id) REFERENCES public.runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.epochs
    ADD CONSTRAINT fk_epochs_run_id FOREIGN KEY (run_id) REFERENCES public.runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.error_groups
    ADD CONSTRAINT fk_error_groups_account_id FOREIGN KEY (account_id) REFERENCES public.accounts(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.exceptions
    ADD CONSTRAINT fk_exceptions_account_id FOREIGN KEY (account_id) REFERENCES public.accounts(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.exceptions
    ADD CONSTRAINT fk_exceptions_run_id FOREIGN KEY (run_id) REFERENCES public.runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.files
    ADD CONSTRAINT fk_files_run_id FOREIGN KEY (run_id) REFERENCES public.runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.logins
    ADD CONSTRAINT fk_logins_account_id FOREIGN KEY (account_id) REFERENCES public.accounts(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.logins
    ADD CONSTRAINT fk_logins_user_id FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.members
    ADD CONSTRAINT fk_members_account_id FOREIGN KEY (account_id) REFERENCES public.accounts(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.members
    ADD CONSTRAINT fk_members_user_id FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.memories
    ADD CONSTRAINT fk_memories_run_id FOREIGN KEY (run_id) REFERENCES public.runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.prefixes
    ADD CONSTRAINT fk_prefixes_run_id FOREIGN KEY (run_id) REFERENCES public.runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.renderings
    ADD CONSTRAINT fk_renderings_run_id FOREIGN KEY (run_id) REFERENCES public.runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.reports
    ADD CONSTRAINT fk_reports_account_id FOREIGN KEY (account_id) REFERENCES public.accounts(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.reports
    ADD CONSTRAINT fk_reports_user_id FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE SET NULL;
ALTER TABLE ONLY public.runs
    ADD CONSTRAINT fk_runs_account_id FOREIGN KEY (account_id) REFERENCES public.accounts(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT fk_sessions_user_id FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.streams
    ADD CONSTRAINT fk_streams_run_id FOREIGN KEY (run_id) REFERENCES public.runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.timeline
    ADD CONSTRAINT fk_timeline_run_id FOREIGN KEY (run_id) REFERENCES public.runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.tokens
    ADD CONSTRAINT fk_tokens_account_id FOREIGN KEY (account_id) REFERENCES public.accounts(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.tokens
    ADD CONSTRAINT fk_tokens_user_id FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.workers
    ADD CONSTRAINT fk_workers_run_id FOREIGN KEY (run_id) REFERENCES public.runs(id) ON DELETE CASCADE;
