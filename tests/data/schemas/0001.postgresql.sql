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
CREATE TABLE public.audit_events (
    id bigint NOT NULL,
    time_us bigint DEFAULT '0'::bigint NOT NULL,
    account_id bigint DEFAULT '0'::bigint NOT NULL,
    "user" text DEFAULT ''::text NOT NULL,
    action text DEFAULT ''::text NOT NULL,
    subject text DEFAULT ''::text NOT NULL,
    address text DEFAULT ''::text NOT NULL,
    details text DEFAULT ''::text NOT NULL
);
CREATE SEQUENCE public.audit_events_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.audit_events_id_seq OWNED BY public.audit_events.id;
CREATE TABLE public.baselines (
    account_id bigint NOT NULL,
    name text NOT NULL,
    test text NOT NULL,
    repeats bigint DEFAULT '0'::bigint NOT NULL,
    created_us bigint DEFAULT '0'::bigint NOT NULL,
    changed_us bigint DEFAULT '0'::bigint NOT NULL,
    "user" text DEFAULT ''::text NOT NULL,
    nbytes bigint DEFAULT '0'::bigint NOT NULL,
    sealed_runs bytea NOT NULL
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
CREATE TABLE public.builds (
    run_id bigint NOT NULL,
    subject text NOT NULL,
    builder text DEFAULT ''::text NOT NULL,
    until_us bigint DEFAULT '0'::bigint NOT NULL,
    problem text DEFAULT ''::text NOT NULL
);
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
CREATE TABLE public.code_texts (
    account_id bigint NOT NULL,
    digest text NOT NULL,
    sealed bytea NOT NULL
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
    code_digest text DEFAULT ''::text NOT NULL,
    code_text text DEFAULT ''::text NOT NULL,
    prefix_states text DEFAULT ''::text NOT NULL
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
    state_by text DEFAULT ''::text NOT NULL,
    is_indexed bigint DEFAULT '0'::bigint NOT NULL
);
CREATE TABLE public.error_words (
    account_id bigint NOT NULL,
    word bigint NOT NULL,
    fingerprint text NOT NULL
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
    state text DEFAULT ''::text NOT NULL,
    address text DEFAULT ''::text NOT NULL,
    host text DEFAULT ''::text NOT NULL,
    scopes text DEFAULT ''::text NOT NULL
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
CREATE TABLE public.documents (
    run_id bigint NOT NULL,
    subject text NOT NULL,
    path text NOT NULL,
    nbytes bigint DEFAULT '0'::bigint NOT NULL,
    created_us bigint DEFAULT '0'::bigint NOT NULL,
    upto bigint DEFAULT '0'::bigint NOT NULL,
    version text DEFAULT ''::text NOT NULL
);
CREATE TABLE public.replaced_files (
    path text NOT NULL,
    run_id bigint NOT NULL,
    delete_us bigint DEFAULT '0'::bigint NOT NULL
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
    peak_memory_limit bigint DEFAULT '0'::bigint NOT NULL,
    tasks_executing bigint DEFAULT '0'::bigint NOT NULL,
    workers_paused bigint DEFAULT '0'::bigint NOT NULL,
    stalled_since_us bigint DEFAULT '0'::bigint NOT NULL,
    longest_running text DEFAULT ''::text NOT NULL,
    stacks_asked_us bigint DEFAULT '0'::bigint NOT NULL,
    stacks_asked_of text DEFAULT ''::text NOT NULL
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
    agent text DEFAULT ''::text NOT NULL,
    page_digest text DEFAULT ''::text NOT NULL,
    address text DEFAULT ''::text NOT NULL,
    by_link bigint DEFAULT '0'::bigint NOT NULL
);
CREATE TABLE public.sign_in_links (
    digest text NOT NULL,
    user_id bigint NOT NULL,
    sets_password bigint DEFAULT '0'::bigint NOT NULL,
    created_us bigint DEFAULT '0'::bigint NOT NULL,
    expires_us bigint DEFAULT '0'::bigint NOT NULL
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
ALTER TABLE ONLY public.audit_events ALTER COLUMN id SET DEFAULT nextval('public.audit_events_id_seq'::regclass);
ALTER TABLE ONLY public.batches ALTER COLUMN id SET DEFAULT nextval('public.batches_id_seq'::regclass);
ALTER TABLE ONLY public.exceptions ALTER COLUMN id SET DEFAULT nextval('public.exceptions_id_seq'::regclass);
ALTER TABLE ONLY public.files ALTER COLUMN id SET DEFAULT nextval('public.files_id_seq'::regclass);
ALTER TABLE ONLY public.reports ALTER COLUMN id SET DEFAULT nextval('public.reports_id_seq'::regclass);
ALTER TABLE ONLY public.runs ALTER COLUMN id SET DEFAULT nextval('public.runs_id_seq'::regclass);
ALTER TABLE ONLY public.tokens ALTER COLUMN id SET DEFAULT nextval('public.tokens_id_seq'::regclass);
ALTER TABLE ONLY public.users ALTER COLUMN id SET DEFAULT nextval('public.users_id_seq'::regclass);
INSERT INTO public.account_keys VALUES (1, 1, '\x8448b03d7ad45d01cedffc78b04c6f5e1078d494d4cd9f93ca1e7ff57133d486ba7f373b5e1d1e8d81db67136a4c17a5282389b456f997f73f195449497be1f5', 0);
INSERT INTO public.accounts VALUES (1, 'team', 1800000000000000, '', 1);
INSERT INTO public.alembic_version VALUES ('0001');
INSERT INTO public.baselines VALUES (1, 'main', 'test_sum', 1, 1800000000000000, 1800000000000000, 'ann', 58, '\x0000000000000001fca9651cef32b2ebfb7a236794216e9f7508a81096e35ce19e59fccf2eaef0a17567dec0c329206f0a8556486d60b29cd27b');
INSERT INTO public.batches VALUES (1, 1, 1, 0, 'clusters', 1, 1800000000000000, 1800000000000000, 1, 0, 1800000000000000, '\x445342019a000000220100009c6e3a0b7b227461626c65223a22636c757374657273222c22736368656d61223a322c22636c7573746572223a226f6c64222c2265706f6368223a312c2273657175656e6365223a302c22726f7773223a312c227430223a313830303030303030303030303030302c227431223a313830303030303030303030303030302c226b657074223a312c2264726f70706564223a302c22726177223a3831307d1e010000789c8d92d16ec3200c452bed47a63ce7a17ddbbf541562e0a428c4ce6cd3edf34748bb36a49bc60be2de8b7db0787dd9ed8ec7c6c5240adcb48d2314cd3b45df9cda638376840719341639c92a6d118b7ca672bcc945b3ce51c2adec3d83482d0b009a34cb1ea2daa63dbced57abddb7871254cbfaaf248323f601fb55fac706f4bf1b0c56086b4817c90d86ba4ee08a70b5f7b37b019690cff5ad295aed88c74d35c22ef49b3407079b1ac1473012d0c173e6e26b1881929a39d045b23730b53288f94890c057cc8b3531e59eb97cffd44ec809d1be47a8ecbb6110c06fa83f89873c94bb5c58f59ca7ebebe979a6697ae45b4a2c04f0052ee996efdac04c367fccfa6df9a7c408feafb145c21e44cdfc8c55f5dcfcb42beb1b5642fe74', '');
INSERT INTO public.batches VALUES (2, 1, 1, 1, 'workers', 1, 1800000000000000, 1800000000000000, 1, 0, 1800000000000000, '\x4453420199000000ce000000f2872e407b227461626c65223a22776f726b657273222c22736368656d61223a322c22636c7573746572223a226f6c64222c2265706f6368223a312c2273657175656e6365223a312c22726f7773223a312c227430223a313830303030303030303030303030302c227431223a313830303030303030303030303030302c226b657074223a312c2264726f70706564223a302c22726177223a3530357dca000000789c8d504b0e832010a557614d2a74d57815630c818992ea6000355ebb27289aa605eda2b080791f7833cf0b21554517eb1ee028a3caa20ff10c6a2c8b42f0ebb6452968cd2aeac1cde01aa313e1f266009bc9c75a431f2465e2ceb3c538139b10e500897b377776bf67d8987ec27767e81c48edbff06d830718ac5b9bde0c261c1d12713d3eec8374e1afa8803ad37d8838036dd42932cc4603aa537ba3b30abc37d846a4371b512539795ae5fa46d9098f5df5715a3f09d9029e42c5acde4420c36b42c80b14959844', '');
INSERT INTO public.batches VALUES (3, 1, 1, 2, 'computations', 1, 1800000000000000, 1800000000000000, 1, 0, 1800000000000000, '\x00000000000000012d10d6adff30aab0a8e3ee4f7cfd427c0c3f3b0d58764ad0296e91543e60d78b7d81edb304b8e7eb8bb304245a532f17b130b94dc433edfb165dcb95893b32299ebc3ce44f6ed1cc5c0a3115dda16f19a0ded1aca6814e67fca445275b180d9fe70ef50c3cddb7807bc6309825e0cd680dcd544b62b34b226b3560aa96c4d07b65eb56a7ed2dba020b265a2cc4efa57e6d152f1e6576b20c78cf52c77d1849a41e4a49e0ba607c44fef00b8056c725211e08e581cbcbf834a0d41aab5de33de8b91b2108756caeee25664ff9164f9b20037bf275724a70d38440a0ea3506b21d053ea76d69cc1ddf3ece7f3ace85a0e23653e8105914b11f5630025ea73026491a21877f13a1ba7e258e9058bc89529bcc27377efd4687a63f47db8f8060e16238379c496204ad1a4a57e45dc9a8bfb79730e5e26a14065aba1f7fdd0c2566de97ba6a31fa997c4b18faf128a377ab2d0943d8e9fbb030e1f3f18ea2b794d91f4343c48e877446cbb5141dbb91e970763cf0b60cbd0aa2436edd3f088b7eedbb0cd1a02fae61f8acdf22fe4bdec2ead11df4240da447b60401a070e8ddade995df46078df2', '');
INSERT INTO public.batches VALUES (4, 1, 1, 3, 'tasks', 3, 1800000001000000, 1800000003000000, 3, 0, 1800000000000000, '\x44534201970000001b010000c65100817b227461626c65223a227461736b73222c22736368656d61223a322c22636c7573746572223a226f6c64222c2265706f6368223a312c2273657175656e6365223a332c22726f7773223a332c227430223a313830303030303030313030303030302c227431223a313830303030303030333030303030302c226b657074223a332c2264726f70706564223a302c22726177223a3733367d17010000789c95926d4e03211086375ea05730fca94d560bd546d35f4daf41360d65c74a7605e443dd437867815a0bab26764836f03eef8499613f2eaa8a52245a5423aea475a8c64d4dd1de28af4f1a12925f93c5ed1d8a501b7814ef254dc06a263339695c3d6bef98132a47514df84d990e4c461cd7abf99ce09bb8c88a24977b32c0c635be78f0d06ebd0d7a0bbd63410f8b44c6ac157bf917b58e195720f2808b08cefb8353e9df8da434cadde0c09e2a0c38153e68184f24dcee7c6645aa4bba900ecc2bebb78c7f4dab1791d3ac6b9c9f8aa4aca7f3d28e0d9e95a5bce1f0bfa49eeda0b7e3217430846df8daf82e94e27ab96c42548758afabcda69a4cbe37145d4d8f3fe1b4bec4b3905d28e487b298a1e613f5e4d70a', '');
INSERT INTO public.batches VALUES (5, 1, 1, 4, 'exceptions', 1, 1800000000000000, 1800000000000000, 1, 0, 1800000000000000, '\x0000000000000001a5bf8b403e5245cb1f9945991dd67c8b642a7361ed58a9d94aede3f2f726eadc4aa45db173e1c2703cdadc1553aef344fe37b7cc489c0c2f3568a89f30d85b78f0bb803b50be2b59717492a3371aa594136abbade6e9dd9f333acfce0ba5c52ba7141805de4a3e4c49d62610f52ccd8fbb9fd7b6a2b2682408535edce536247447a3ac60d3053438d9e8ef4f91f016d72e6947ab6517acb528681008ce42f745b7588c11d32a30badef77e5c9fcc4549e9d871c46e5f0203a255977e5b6f3c24ea3a67b4bb298880f46b18d4d8738da1d09ea50c938e0a04a049c506964b8193aab25761dd2eed10bcdfbefa68c1ffbe85b5e3d9b8d5824f6e8f9ed728c231cc27e71d9577d55ddfc2530a6fd7c6150b3da2a0ddafeaa5bfcc097a3a92102d89f65f604c31321a1d6b5d5e84ec4e3e1c7ed174d132aa7e862b0cad4f95d61fc18def57d09a30628bba626b121e135b0ce076954af6867b6c8b33bf1b1e71f0dd88770d4c51bce13a2267a9781ab60e0690e73032e4f2e33c34ce9a8cd7bfd5578eef106b6ad43f3468bd91403b84cc71', '');
INSERT INTO public.code_texts VALUES (1, '730e442384378a5108c6a611581c421ef39535d22118690b8699118d54e13661', '\x0000000000000001412b7f05b25e9b7053c48413a612e87707d0e9d6935d9cf252cdbcfc76b17fdf43920a5eb1eceb');
INSERT INTO public.computations VALUES (1, 'comp', 1, 1800000000000000, 1800000000000000, 0, 'finished', '', '', 0, '', 0, 0, 3, 0, 0, 0, 0, 0, 'ee7d069f9b2def25', '730e442384378a5108c6a611581c421ef39535d22118690b8699118d54e13661', '');
INSERT INTO public.days VALUES (1, 20833, 'inc', 1, 3, 0, 3000000, 0, 300);
INSERT INTO public.epochs VALUES (1, 1, 0, 4, 1, 5, 1);
INSERT INTO public.error_groups VALUES (1, 'f', 'ValueError', '\x0000000000000001b06685fc2c2114980f0d49457df6fdc1e1b908bce59f8f1b04f96fa3fa3fc345f2ee7396c7f75b69fef104123cb8e89556c5018a5f4886610b824b3c6c6a1ab3d50a98b25245dc383addd2b207cb71ae0110da9bf0d3949a8b55', 1800000000000000, 1800000000000000, 1, 'open', 0, '', 0);
INSERT INTO public.exceptions VALUES (1, 1, 1, 'f', 1800000000000000, '', '', '', '', '', 'ValueError', '', '\x0000000000000001b06685fc2c2114980f0d49457df6fdc1e1b908bce59f8f1b04f96fa3fa3fc345f2ee7396c7f75b69fef104123cb8e89556c5018a5f4886610b824b3c6c6a1ab3d50a98b25245dc383addd2b207cb71ae0110da9bf0d3949a8b55', 0, 1, 'ann');
INSERT INTO public.facts VALUES ('master key', '8448b03d56b05443b34c21f5e67be4192825ac91fc0acd49b21f15b826991e02f7d89c045b5eecbbaa17da471e7b0a527386b4b2e08af6cadc65b4377088ca8a');
INSERT INTO public.members VALUES (1, 1, 'owner', 1800000000000000);
INSERT INTO public.prefixes VALUES (1, 'comp', 'inc', 3, 0, 0, 0, 3000000, 0, 0, 0, 300, 1800000000000000, 1800000003000000, 1000000);
INSERT INTO public.reports VALUES (1, 1, 1, '', 1, 'run.html', 'Nightly', '[]', 'account', 'recording', 'none', '', 10, 1800000000000000, 0, '', '', 0, 0, 0);
INSERT INTO public.runs VALUES (1, 1, 'old', 'etl', 'ann', '', '', '', 1800000000000000, 1800000000000000, 1800000000000000, 1800000000000000, 0, 0, '', 0, 0, 0, 0, 0, 0, 1, 0, 3, 0, 3000000, 0, 0, 300, 1, 1800000003000000, 0, 7, 2050, 0, 0, 0, 0, 1, 2050, 0, 0, '', '', '', '', '', '', 1, 2, 0, 0, 0, 0, '', 0, '');
INSERT INTO public.streams VALUES (1, 1, 'clusters', 1, 1, 0, 1, 1);
INSERT INTO public.streams VALUES (1, 1, 'computations', 1, 1, 0, 1, 1);
INSERT INTO public.streams VALUES (1, 1, 'exceptions', 1, 1, 0, 1, 1);
INSERT INTO public.streams VALUES (1, 1, 'tasks', 3, 3, 0, 1, 1);
INSERT INTO public.streams VALUES (1, 1, 'workers', 1, 1, 0, 1, 1);
INSERT INTO public.timeline VALUES (1, 1800000000000000, 3, 0, 3000000, 0);
INSERT INTO public.tokens VALUES (1, 1, 1, '784ba64690b057fd315789be10efd7cd91363337df06a9209d42eb3685a68dcc', 'dscope_Fmn9', 'nightly', 'read', '', 1800000000000000, 0, 0, 0, 0);
INSERT INTO public.users VALUES (1, 'ann', '', '', 1800000000000000, 0, 0);
INSERT INTO public.workers VALUES (1, 'w', 'tcp://10.0.0.1:1', '', '', 1800000000000000, 2, 0, 1800000000000000, 0, '', '', 0, 0);
SELECT pg_catalog.setval('public.account_keys_id_seq', 1, true);
SELECT pg_catalog.setval('public.accounts_id_seq', 1, true);
SELECT pg_catalog.setval('public.audit_events_id_seq', 1, false);
SELECT pg_catalog.setval('public.batches_id_seq', 5, true);
SELECT pg_catalog.setval('public.exceptions_id_seq', 1, true);
SELECT pg_catalog.setval('public.files_id_seq', 1, false);
SELECT pg_catalog.setval('public.reports_id_seq', 1, true);
SELECT pg_catalog.setval('public.runs_id_seq', 1, true);
SELECT pg_catalog.setval('public.tokens_id_seq', 1, true);
SELECT pg_catalog.setval('public.users_id_seq', 1, true);
ALTER TABLE ONLY public.alembic_version
    ADD CONSTRAINT alembic_version_pkey PRIMARY KEY (version_num);
ALTER TABLE ONLY public.account_keys
    ADD CONSTRAINT pk_account_keys PRIMARY KEY (id);
ALTER TABLE ONLY public.accounts
    ADD CONSTRAINT pk_accounts PRIMARY KEY (id);
ALTER TABLE ONLY public.activities
    ADD CONSTRAINT pk_activities PRIMARY KEY (run_id, span, context, prefix, activity, unit);
ALTER TABLE ONLY public.attempts
    ADD CONSTRAINT pk_attempts PRIMARY KEY (subject);
ALTER TABLE ONLY public.audit_events
    ADD CONSTRAINT pk_audit_events PRIMARY KEY (id);
ALTER TABLE ONLY public.baselines
    ADD CONSTRAINT pk_baselines PRIMARY KEY (account_id, name, test);
ALTER TABLE ONLY public.batches
    ADD CONSTRAINT pk_batches PRIMARY KEY (id);
ALTER TABLE ONLY public.builds
    ADD CONSTRAINT pk_builds PRIMARY KEY (run_id, subject);
ALTER TABLE ONLY public.clients
    ADD CONSTRAINT pk_clients PRIMARY KEY (run_id, client);
ALTER TABLE ONLY public.code_texts
    ADD CONSTRAINT pk_code_texts PRIMARY KEY (account_id, digest);
ALTER TABLE ONLY public.computations
    ADD CONSTRAINT pk_computations PRIMARY KEY (run_id, computation);
ALTER TABLE ONLY public.days
    ADD CONSTRAINT pk_days PRIMARY KEY (run_id, day, prefix);
ALTER TABLE ONLY public.epochs
    ADD CONSTRAINT pk_epochs PRIMARY KEY (run_id, epoch);
ALTER TABLE ONLY public.error_groups
    ADD CONSTRAINT pk_error_groups PRIMARY KEY (account_id, fingerprint);
ALTER TABLE ONLY public.error_words
    ADD CONSTRAINT pk_error_words PRIMARY KEY (account_id, word, fingerprint);
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
ALTER TABLE ONLY public.documents
    ADD CONSTRAINT pk_documents PRIMARY KEY (run_id, subject);
ALTER TABLE ONLY public.replaced_files
    ADD CONSTRAINT pk_replaced_files PRIMARY KEY (path);
ALTER TABLE ONLY public.reports
    ADD CONSTRAINT pk_reports PRIMARY KEY (id);
ALTER TABLE ONLY public.runs
    ADD CONSTRAINT pk_runs PRIMARY KEY (id);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT pk_sessions PRIMARY KEY (digest);
ALTER TABLE ONLY public.sign_in_links
    ADD CONSTRAINT pk_sign_in_links PRIMARY KEY (digest);
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
ALTER TABLE ONLY public.documents
    ADD CONSTRAINT uq_documents_path UNIQUE (path);
ALTER TABLE ONLY public.reports
    ADD CONSTRAINT uq_reports_account_id_number UNIQUE (account_id, number);
ALTER TABLE ONLY public.runs
    ADD CONSTRAINT uq_runs_account_id_cluster UNIQUE (account_id, cluster);
ALTER TABLE ONLY public.tokens
    ADD CONSTRAINT uq_tokens_digest UNIQUE (digest);
ALTER TABLE ONLY public.users
    ADD CONSTRAINT uq_users_name UNIQUE (name);
CREATE INDEX ix_account_keys_account_id ON public.account_keys USING btree (account_id);
CREATE INDEX ix_audit_events_account_id_id ON public.audit_events USING btree (account_id, id);
CREATE INDEX ix_audit_events_time_us ON public.audit_events USING btree (time_us);
CREATE INDEX ix_computations_account_id_code_digest_start_us ON public.computations USING btree (account_id, code_digest, start_us);
CREATE INDEX ix_computations_account_id_code_text ON public.computations USING btree (account_id, code_text);
CREATE INDEX ix_computations_account_id_seen_us ON public.computations USING btree (account_id, seen_us);
CREATE INDEX ix_computations_account_id_start_us ON public.computations USING btree (account_id, start_us);
CREATE INDEX ix_computations_run_id_start_us ON public.computations USING btree (run_id, start_us);
CREATE INDEX ix_days_account_id_day ON public.days USING btree (account_id, day);
CREATE INDEX ix_error_groups_account_id_last_us ON public.error_groups USING btree (account_id, last_us);
CREATE INDEX ix_error_groups_is_indexed ON public.error_groups USING btree (is_indexed);
CREATE INDEX ix_error_words_account_id_fingerprint ON public.error_words USING btree (account_id, fingerprint);
CREATE INDEX ix_exceptions_account_id_fingerprint_time_us ON public.exceptions USING btree (account_id, fingerprint, time_us);
CREATE INDEX ix_exceptions_account_id_fingerprint_user_run_id ON public.exceptions USING btree (account_id, fingerprint, "user", run_id);
CREATE INDEX ix_exceptions_account_id_time_us ON public.exceptions USING btree (account_id, time_us);
CREATE INDEX ix_exceptions_run_id_time_us ON public.exceptions USING btree (run_id, time_us);
CREATE INDEX ix_files_run_id_name ON public.files USING btree (run_id, name);
CREATE INDEX ix_members_user_id ON public.members USING btree (user_id);
CREATE INDEX ix_replaced_files_delete_us ON public.replaced_files USING btree (delete_us);
CREATE INDEX ix_replaced_files_run_id ON public.replaced_files USING btree (run_id);
CREATE INDEX ix_reports_share ON public.reports USING btree (share);
CREATE INDEX ix_runs_account_id_start_us ON public.runs USING btree (account_id, start_us);
CREATE INDEX ix_runs_buffered_nbytes ON public.runs USING btree (buffered_nbytes);
CREATE INDEX ix_runs_state ON public.runs USING btree (account_id, received_us, end_us, idle_since_us);
CREATE INDEX ix_sessions_user_id ON public.sessions USING btree (user_id);
CREATE INDEX ix_tokens_account_id_user_id ON public.tokens USING btree (account_id, user_id);
CREATE INDEX ix_tokens_parent ON public.tokens USING btree (parent);
CREATE INDEX ix_workers_verdict_run_id ON public.workers USING btree (verdict, run_id);
ALTER TABLE ONLY public.account_keys
    ADD CONSTRAINT fk_account_keys_account_id FOREIGN KEY (account_id) REFERENCES public.accounts(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.activities
    ADD CONSTRAINT fk_activities_run_id FOREIGN KEY (run_id) REFERENCES public.runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.baselines
    ADD CONSTRAINT fk_baselines_account_id FOREIGN KEY (account_id) REFERENCES public.accounts(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.batches
    ADD CONSTRAINT fk_batches_run_id FOREIGN KEY (run_id) REFERENCES public.runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.builds
    ADD CONSTRAINT fk_builds_run_id FOREIGN KEY (run_id) REFERENCES public.runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.clients
    ADD CONSTRAINT fk_clients_run_id FOREIGN KEY (run_id) REFERENCES public.runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.code_texts
    ADD CONSTRAINT fk_code_texts_account_id FOREIGN KEY (account_id) REFERENCES public.accounts(id) ON DELETE CASCADE;
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
ALTER TABLE ONLY public.error_words
    ADD CONSTRAINT fk_error_words_account_id FOREIGN KEY (account_id, fingerprint) REFERENCES public.error_groups(account_id, fingerprint) ON DELETE CASCADE;
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
ALTER TABLE ONLY public.documents
    ADD CONSTRAINT fk_documents_run_id FOREIGN KEY (run_id) REFERENCES public.runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.replaced_files
    ADD CONSTRAINT fk_replaced_files_run_id FOREIGN KEY (run_id) REFERENCES public.runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.reports
    ADD CONSTRAINT fk_reports_account_id FOREIGN KEY (account_id) REFERENCES public.accounts(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.reports
    ADD CONSTRAINT fk_reports_user_id FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE SET NULL;
ALTER TABLE ONLY public.runs
    ADD CONSTRAINT fk_runs_account_id FOREIGN KEY (account_id) REFERENCES public.accounts(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT fk_sessions_user_id FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.sign_in_links
    ADD CONSTRAINT fk_sign_in_links_user_id FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;
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
