BEGIN TRANSACTION;
CREATE TABLE account_keys (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	account_id INTEGER NOT NULL, 
	wrapped BLOB NOT NULL, 
	created_us BIGINT DEFAULT '0' NOT NULL, 
	CONSTRAINT fk_account_keys_account_id FOREIGN KEY(account_id) REFERENCES accounts (id) ON DELETE CASCADE
);
CREATE TABLE accounts (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	name TEXT NOT NULL, 
	created_us BIGINT DEFAULT '0' NOT NULL, 
	preferences TEXT DEFAULT '' NOT NULL, 
	last_report BIGINT DEFAULT '0' NOT NULL, 
	CONSTRAINT uq_accounts_name UNIQUE (name)
);
INSERT INTO "accounts" VALUES(1,'acme',0,'',0);
CREATE TABLE activities (
	run_id INTEGER NOT NULL, 
	span TEXT NOT NULL, 
	context TEXT NOT NULL, 
	prefix TEXT NOT NULL, 
	activity TEXT NOT NULL, 
	unit TEXT NOT NULL, 
	value FLOAT DEFAULT '0' NOT NULL, 
	CONSTRAINT pk_activities PRIMARY KEY (run_id, span, context, prefix, activity, unit), 
	CONSTRAINT fk_activities_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0003');
CREATE TABLE attempts (
	subject TEXT NOT NULL, 
	tries BIGINT DEFAULT '0' NOT NULL, 
	since_us BIGINT DEFAULT '0' NOT NULL, 
	CONSTRAINT pk_attempts PRIMARY KEY (subject)
);
CREATE TABLE batches (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	run_id INTEGER NOT NULL, 
	epoch BIGINT NOT NULL, 
	sequence BIGINT NOT NULL, 
	name TEXT NOT NULL, 
	rows BIGINT DEFAULT '0' NOT NULL, 
	t0 BIGINT DEFAULT '0' NOT NULL, 
	t1 BIGINT DEFAULT '0' NOT NULL, 
	kept BIGINT DEFAULT '0' NOT NULL, 
	dropped BIGINT DEFAULT '0' NOT NULL, 
	received_us BIGINT DEFAULT '0' NOT NULL, 
	frame BLOB, 
	damage TEXT DEFAULT '' NOT NULL, 
	CONSTRAINT fk_batches_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE, 
	CONSTRAINT uq_batches_run_id_epoch_sequence UNIQUE (run_id, epoch, sequence)
);
CREATE TABLE clients (
	run_id INTEGER NOT NULL, 
	client TEXT NOT NULL, 
	seen_us BIGINT DEFAULT '0' NOT NULL, 
	connect_us BIGINT DEFAULT '0' NOT NULL, 
	last_seen_us BIGINT DEFAULT '0' NOT NULL, 
	disconnect_us BIGINT DEFAULT '0' NOT NULL, 
	held_keys BIGINT DEFAULT '0' NOT NULL, 
	held_nbytes BIGINT DEFAULT '0' NOT NULL, 
	CONSTRAINT pk_clients PRIMARY KEY (run_id, client), 
	CONSTRAINT fk_clients_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
CREATE TABLE computations (
	run_id INTEGER NOT NULL, 
	computation TEXT NOT NULL, 
	account_id INTEGER NOT NULL, 
	seen_us BIGINT DEFAULT '0' NOT NULL, 
	start_us BIGINT DEFAULT '0' NOT NULL, 
	stop_us BIGINT DEFAULT '0' NOT NULL, 
	state TEXT DEFAULT '' NOT NULL, 
	client TEXT DEFAULT '' NOT NULL, 
	span TEXT DEFAULT '' NOT NULL, 
	sealed_code BLOB, 
	code_line BIGINT DEFAULT '0' NOT NULL, 
	code_file TEXT DEFAULT '' NOT NULL, 
	submissions BIGINT DEFAULT '0' NOT NULL, 
	groups BIGINT DEFAULT '0' NOT NULL, 
	tasks BIGINT DEFAULT '0' NOT NULL, 
	memory BIGINT DEFAULT '0' NOT NULL, 
	erred BIGINT DEFAULT '0' NOT NULL, 
	released BIGINT DEFAULT '0' NOT NULL, 
	forgotten BIGINT DEFAULT '0' NOT NULL, 
	unfinished BIGINT DEFAULT '0' NOT NULL, code_digest TEXT DEFAULT '' NOT NULL, 
	CONSTRAINT pk_computations PRIMARY KEY (run_id, computation), 
	CONSTRAINT fk_computations_account_id FOREIGN KEY(account_id) REFERENCES accounts (id) ON DELETE CASCADE, 
	CONSTRAINT fk_computations_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "computations" VALUES(1,'c',1,0,5,0,'done','','',NULL,0,'',0,0,0,0,0,0,0,0,'');
CREATE TABLE days (
	run_id INTEGER NOT NULL, 
	day INTEGER NOT NULL, 
	prefix TEXT NOT NULL, 
	account_id INTEGER NOT NULL, 
	tasks BIGINT DEFAULT '0' NOT NULL, 
	errors BIGINT DEFAULT '0' NOT NULL, 
	compute_us BIGINT DEFAULT '0' NOT NULL, 
	transfer_us BIGINT DEFAULT '0' NOT NULL, 
	nbytes BIGINT DEFAULT '0' NOT NULL, 
	CONSTRAINT pk_days PRIMARY KEY (run_id, day, prefix), 
	CONSTRAINT fk_days_account_id FOREIGN KEY(account_id) REFERENCES accounts (id) ON DELETE CASCADE, 
	CONSTRAINT fk_days_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
CREATE TABLE epochs (
	run_id INTEGER NOT NULL, 
	epoch BIGINT NOT NULL, 
	floor BIGINT DEFAULT '0' NOT NULL, 
	highest BIGINT DEFAULT '0' NOT NULL, 
	lowest BIGINT DEFAULT '0' NOT NULL, 
	taken BIGINT DEFAULT '0' NOT NULL, 
	from_start BIGINT DEFAULT '0' NOT NULL, 
	CONSTRAINT pk_epochs PRIMARY KEY (run_id, epoch), 
	CONSTRAINT fk_epochs_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
CREATE TABLE error_groups (
	account_id INTEGER NOT NULL, 
	fingerprint TEXT NOT NULL, 
	type TEXT DEFAULT '' NOT NULL, 
	sealed_sample BLOB, 
	first_us BIGINT DEFAULT '0' NOT NULL, 
	last_us BIGINT DEFAULT '0' NOT NULL, 
	count BIGINT DEFAULT '0' NOT NULL, 
	state TEXT DEFAULT 'open' NOT NULL, 
	state_us BIGINT DEFAULT '0' NOT NULL, 
	state_by TEXT DEFAULT '' NOT NULL, 
	CONSTRAINT pk_error_groups PRIMARY KEY (account_id, fingerprint), 
	CONSTRAINT fk_error_groups_account_id FOREIGN KEY(account_id) REFERENCES accounts (id) ON DELETE CASCADE
);
CREATE TABLE exceptions (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	account_id INTEGER NOT NULL, 
	run_id INTEGER NOT NULL, 
	fingerprint TEXT DEFAULT '' NOT NULL, 
	time_us BIGINT DEFAULT '0' NOT NULL, 
	"key" TEXT DEFAULT '' NOT NULL, 
	prefix TEXT DEFAULT '' NOT NULL, 
	span TEXT DEFAULT '' NOT NULL, 
	computation TEXT DEFAULT '' NOT NULL, 
	worker TEXT DEFAULT '' NOT NULL, 
	type TEXT DEFAULT '' NOT NULL, 
	cause_type TEXT DEFAULT '' NOT NULL, 
	sealed_text BLOB, 
	will_retry BIGINT DEFAULT '0' NOT NULL, 
	count BIGINT DEFAULT '0' NOT NULL, 
	user TEXT DEFAULT '' NOT NULL, 
	CONSTRAINT fk_exceptions_account_id FOREIGN KEY(account_id) REFERENCES accounts (id) ON DELETE CASCADE, 
	CONSTRAINT fk_exceptions_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
CREATE TABLE facts (
	name TEXT NOT NULL, 
	value TEXT DEFAULT '' NOT NULL, 
	CONSTRAINT pk_facts PRIMARY KEY (name)
);
CREATE TABLE files (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	run_id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	path TEXT NOT NULL, 
	rows BIGINT DEFAULT '0' NOT NULL, 
	nbytes BIGINT DEFAULT '0' NOT NULL, 
	t0 BIGINT DEFAULT '0' NOT NULL, 
	t1 BIGINT DEFAULT '0' NOT NULL, 
	created_us BIGINT DEFAULT '0' NOT NULL, 
	CONSTRAINT fk_files_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE, 
	CONSTRAINT uq_files_path UNIQUE (path)
);
CREATE TABLE logins (
	device_digest TEXT NOT NULL, 
	user_code TEXT NOT NULL, 
	label TEXT DEFAULT '' NOT NULL, 
	created_us BIGINT DEFAULT '0' NOT NULL, 
	expires_us BIGINT DEFAULT '0' NOT NULL, 
	user_id INTEGER, 
	account_id INTEGER, 
	state TEXT DEFAULT '' NOT NULL, 
	CONSTRAINT pk_logins PRIMARY KEY (device_digest), 
	CONSTRAINT fk_logins_account_id FOREIGN KEY(account_id) REFERENCES accounts (id) ON DELETE CASCADE, 
	CONSTRAINT fk_logins_user_id FOREIGN KEY(user_id) REFERENCES users (id) ON DELETE CASCADE, 
	CONSTRAINT uq_logins_user_code UNIQUE (user_code)
);
CREATE TABLE members (
	account_id INTEGER NOT NULL, 
	user_id INTEGER NOT NULL, 
	role TEXT DEFAULT '' NOT NULL, 
	since_us BIGINT DEFAULT '0' NOT NULL, 
	CONSTRAINT pk_members PRIMARY KEY (account_id, user_id), 
	CONSTRAINT fk_members_account_id FOREIGN KEY(account_id) REFERENCES accounts (id) ON DELETE CASCADE, 
	CONSTRAINT fk_members_user_id FOREIGN KEY(user_id) REFERENCES users (id) ON DELETE CASCADE
);
CREATE TABLE memories (
	run_id INTEGER NOT NULL, 
	worker TEXT NOT NULL, 
	time_us BIGINT DEFAULT '0' NOT NULL, 
	memory BIGINT DEFAULT '0' NOT NULL, 
	cpu_percent FLOAT DEFAULT '0' NOT NULL, 
	CONSTRAINT pk_memories PRIMARY KEY (run_id, worker), 
	CONSTRAINT fk_memories_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
CREATE TABLE prefixes (
	run_id INTEGER NOT NULL, 
	computation TEXT NOT NULL, 
	prefix TEXT NOT NULL, 
	tasks BIGINT DEFAULT '0' NOT NULL, 
	errors BIGINT DEFAULT '0' NOT NULL, 
	retried BIGINT DEFAULT '0' NOT NULL, 
	killed BIGINT DEFAULT '0' NOT NULL, 
	compute_us BIGINT DEFAULT '0' NOT NULL, 
	transfer_us BIGINT DEFAULT '0' NOT NULL, 
	disk_us BIGINT DEFAULT '0' NOT NULL, 
	deserialize_us BIGINT DEFAULT '0' NOT NULL, 
	nbytes BIGINT DEFAULT '0' NOT NULL, 
	first_us BIGINT DEFAULT '0' NOT NULL, 
	last_us BIGINT DEFAULT '0' NOT NULL, 
	longest_us BIGINT DEFAULT '0' NOT NULL, 
	CONSTRAINT pk_prefixes PRIMARY KEY (run_id, computation, prefix), 
	CONSTRAINT fk_prefixes_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
CREATE TABLE renderings (
	run_id INTEGER NOT NULL, 
	subject TEXT NOT NULL, 
	path TEXT NOT NULL, 
	nbytes BIGINT DEFAULT '0' NOT NULL, 
	created_us BIGINT DEFAULT '0' NOT NULL, 
	upto BIGINT DEFAULT '0' NOT NULL, 
	version TEXT DEFAULT '' NOT NULL, 
	CONSTRAINT pk_renderings PRIMARY KEY (run_id, subject), 
	CONSTRAINT fk_renderings_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE, 
	CONSTRAINT uq_renderings_path UNIQUE (path)
);
CREATE TABLE reports (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	account_id INTEGER NOT NULL, 
	number BIGINT DEFAULT '0' NOT NULL, 
	share TEXT DEFAULT '' NOT NULL, 
	user_id INTEGER, 
	filename TEXT DEFAULT '' NOT NULL, 
	title TEXT DEFAULT '' NOT NULL, 
	tags TEXT DEFAULT '' NOT NULL, 
	visibility TEXT DEFAULT '' NOT NULL, 
	kind TEXT DEFAULT '' NOT NULL, 
	path TEXT DEFAULT '' NOT NULL, 
	html_path TEXT DEFAULT '' NOT NULL, 
	nbytes BIGINT DEFAULT '0' NOT NULL, 
	created_us BIGINT DEFAULT '0' NOT NULL, 
	expires_us BIGINT DEFAULT '0' NOT NULL, 
	cluster TEXT DEFAULT '' NOT NULL, 
	status TEXT DEFAULT '' NOT NULL, 
	duration_us BIGINT DEFAULT '0' NOT NULL, 
	tasks BIGINT DEFAULT '0' NOT NULL, 
	errors BIGINT DEFAULT '0' NOT NULL, 
	CONSTRAINT fk_reports_account_id FOREIGN KEY(account_id) REFERENCES accounts (id) ON DELETE CASCADE, 
	CONSTRAINT fk_reports_user_id FOREIGN KEY(user_id) REFERENCES users (id) ON DELETE SET NULL, 
	CONSTRAINT uq_reports_account_id_number UNIQUE (account_id, number)
);
CREATE TABLE runs (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	account_id INTEGER NOT NULL, 
	cluster TEXT NOT NULL, 
	name TEXT DEFAULT '' NOT NULL, 
	user TEXT DEFAULT '' NOT NULL, 
	host TEXT DEFAULT '' NOT NULL, 
	address TEXT DEFAULT '' NOT NULL, 
	tags TEXT DEFAULT '' NOT NULL, 
	created_us BIGINT DEFAULT '0' NOT NULL, 
	received_us BIGINT DEFAULT '0' NOT NULL, 
	seen_us BIGINT DEFAULT '0' NOT NULL, 
	start_us BIGINT DEFAULT '0' NOT NULL, 
	recording_us BIGINT DEFAULT '0' NOT NULL, 
	end_us BIGINT DEFAULT '0' NOT NULL, 
	end_reason TEXT DEFAULT '' NOT NULL, 
	clock_offset_us BIGINT DEFAULT '0' NOT NULL, 
	idle_since_us BIGINT DEFAULT '0' NOT NULL, 
	idle_timeout_s FLOAT DEFAULT '0' NOT NULL, 
	tasks_queued BIGINT DEFAULT '0' NOT NULL, 
	tasks_processing BIGINT DEFAULT '0' NOT NULL, 
	tasks_unrunnable BIGINT DEFAULT '0' NOT NULL, 
	workers BIGINT DEFAULT '0' NOT NULL, 
	threads BIGINT DEFAULT '0' NOT NULL, 
	tasks BIGINT DEFAULT '0' NOT NULL, 
	errors BIGINT DEFAULT '0' NOT NULL, 
	compute_us BIGINT DEFAULT '0' NOT NULL, 
	transfer_us BIGINT DEFAULT '0' NOT NULL, 
	disk_us BIGINT DEFAULT '0' NOT NULL, 
	nbytes BIGINT DEFAULT '0' NOT NULL, 
	exceptions BIGINT DEFAULT '0' NOT NULL, 
	last_work_us BIGINT DEFAULT '0' NOT NULL, 
	tasks_removed BIGINT DEFAULT '0' NOT NULL, 
	rows BIGINT DEFAULT '0' NOT NULL, 
	wire_nbytes BIGINT DEFAULT '0' NOT NULL, 
	thread_us BIGINT DEFAULT '0' NOT NULL, 
	memory_byte_s FLOAT DEFAULT '0' NOT NULL, 
	memory BIGINT DEFAULT '0' NOT NULL, 
	memory_limit BIGINT DEFAULT '0' NOT NULL, 
	computations BIGINT DEFAULT '0' NOT NULL, 
	buffered_nbytes BIGINT DEFAULT '0' NOT NULL, 
	compacted_us BIGINT DEFAULT '0' NOT NULL, 
	close_us BIGINT DEFAULT '0' NOT NULL, 
	prices TEXT DEFAULT '' NOT NULL, 
	unrunnable_needs TEXT DEFAULT '' NOT NULL, 
	dropped TEXT DEFAULT '' NOT NULL, 
	platform TEXT DEFAULT '' NOT NULL, 
	versions TEXT DEFAULT '' NOT NULL, 
	config TEXT DEFAULT '' NOT NULL, peak_workers BIGINT DEFAULT '0' NOT NULL, peak_threads BIGINT DEFAULT '0' NOT NULL, peak_memory_limit BIGINT DEFAULT '0' NOT NULL, 
	CONSTRAINT fk_runs_account_id FOREIGN KEY(account_id) REFERENCES accounts (id) ON DELETE CASCADE, 
	CONSTRAINT uq_runs_account_id_cluster UNIQUE (account_id, cluster)
);
INSERT INTO "runs" VALUES(1,1,'old','','','','','',0,0,0,0,0,0,'',0,0,0.0,0,0,0,0,0,7,0,0,0,0,0,0,0,0,0,0,0,0.0,0,0,0,0,0,0,'','','','','','',2,5,250);
INSERT INTO "runs" VALUES(2,1,'hostile','','','','','',0,0,0,0,0,0,'',0,0,0.0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0.0,0,0,0,0,0,0,'','','','','','',2,9007199254740992,2);
INSERT INTO "runs" VALUES(3,1,'without workers','','','','','',0,0,0,0,0,0,'',0,0,0.0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0.0,0,0,0,0,0,0,'','','','','','',0,0,0);
CREATE TABLE sessions (
	digest TEXT NOT NULL, 
	user_id INTEGER NOT NULL, 
	created_us BIGINT DEFAULT '0' NOT NULL, 
	expires_us BIGINT DEFAULT '0' NOT NULL, 
	agent TEXT DEFAULT '' NOT NULL, 
	CONSTRAINT pk_sessions PRIMARY KEY (digest), 
	CONSTRAINT fk_sessions_user_id FOREIGN KEY(user_id) REFERENCES users (id) ON DELETE CASCADE
);
CREATE TABLE streams (
	run_id INTEGER NOT NULL, 
	epoch BIGINT NOT NULL, 
	name TEXT NOT NULL, 
	rows BIGINT DEFAULT '0' NOT NULL, 
	kept BIGINT DEFAULT '0' NOT NULL, 
	dropped BIGINT DEFAULT '0' NOT NULL, 
	first BIGINT DEFAULT '0' NOT NULL, 
	dropped_before BIGINT DEFAULT '0' NOT NULL, 
	CONSTRAINT pk_streams PRIMARY KEY (run_id, epoch, name), 
	CONSTRAINT fk_streams_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
CREATE TABLE timeline (
	run_id INTEGER NOT NULL, 
	bucket BIGINT NOT NULL, 
	tasks BIGINT DEFAULT '0' NOT NULL, 
	errors BIGINT DEFAULT '0' NOT NULL, 
	compute_us BIGINT DEFAULT '0' NOT NULL, 
	transfer_us BIGINT DEFAULT '0' NOT NULL, 
	CONSTRAINT pk_timeline PRIMARY KEY (run_id, bucket), 
	CONSTRAINT fk_timeline_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
CREATE TABLE tokens (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	account_id INTEGER NOT NULL, 
	user_id INTEGER NOT NULL, 
	digest TEXT NOT NULL, 
	hint TEXT DEFAULT '' NOT NULL, 
	label TEXT DEFAULT '' NOT NULL, 
	scopes TEXT DEFAULT '' NOT NULL, 
	cluster TEXT DEFAULT '' NOT NULL, 
	created_us BIGINT DEFAULT '0' NOT NULL, 
	expires_us BIGINT DEFAULT '0' NOT NULL, 
	used_us BIGINT DEFAULT '0' NOT NULL, 
	revoked_us BIGINT DEFAULT '0' NOT NULL, parent BIGINT DEFAULT '0' NOT NULL, 
	CONSTRAINT fk_tokens_account_id FOREIGN KEY(account_id) REFERENCES accounts (id) ON DELETE CASCADE, 
	CONSTRAINT fk_tokens_user_id FOREIGN KEY(user_id) REFERENCES users (id) ON DELETE CASCADE, 
	CONSTRAINT uq_tokens_digest UNIQUE (digest)
);
INSERT INTO "tokens" VALUES(1,1,1,'d','','','','',0,0,0,0,0);
CREATE TABLE users (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	name TEXT NOT NULL, 
	email TEXT DEFAULT '' NOT NULL, 
	password TEXT DEFAULT '' NOT NULL, 
	created_us BIGINT DEFAULT '0' NOT NULL, 
	disabled_us BIGINT DEFAULT '0' NOT NULL, 
	admin BIGINT DEFAULT '0' NOT NULL, 
	CONSTRAINT uq_users_name UNIQUE (name)
);
INSERT INTO "users" VALUES(1,'ann','','',0,0,0);
CREATE TABLE workers (
	run_id INTEGER NOT NULL, 
	server_id TEXT NOT NULL, 
	worker TEXT DEFAULT '' NOT NULL, 
	name TEXT DEFAULT '' NOT NULL, 
	host TEXT DEFAULT '' NOT NULL, 
	seen_us BIGINT DEFAULT '0' NOT NULL, 
	nthreads BIGINT DEFAULT '0' NOT NULL, 
	memory_limit BIGINT DEFAULT '0' NOT NULL, 
	start_us BIGINT DEFAULT '0' NOT NULL, 
	end_us BIGINT DEFAULT '0' NOT NULL, 
	verdict TEXT DEFAULT '' NOT NULL, 
	evidence TEXT DEFAULT '' NOT NULL, 
	processing_count BIGINT DEFAULT '0' NOT NULL, 
	lost_count BIGINT DEFAULT '0' NOT NULL, 
	CONSTRAINT pk_workers PRIMARY KEY (run_id, server_id), 
	CONSTRAINT fk_workers_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "workers" VALUES(1,'a','','','',0,2,100,10,20,'','',0,0);
INSERT INTO "workers" VALUES(1,'b','','','',0,4,200,20,40,'','',0,0);
INSERT INTO "workers" VALUES(1,'c','','','',0,1,50,30,0,'','',0,0);
INSERT INTO "workers" VALUES(2,'d','','','',0,9007199254740992,1,1,2,'','',0,0);
INSERT INTO "workers" VALUES(2,'e','','','',0,9007199254740992,1,1,2,'','',0,0);
CREATE INDEX ix_account_keys_account_id ON account_keys (account_id);
CREATE INDEX ix_error_groups_account_id_last_us ON error_groups (account_id, last_us);
CREATE INDEX ix_members_user_id ON members (user_id);
CREATE INDEX ix_reports_share ON reports (share);
CREATE INDEX ix_runs_account_id_start_us ON runs (account_id, start_us);
CREATE INDEX ix_runs_buffered_nbytes ON runs (buffered_nbytes);
CREATE INDEX ix_runs_state ON runs (account_id, received_us, end_us, idle_since_us);
CREATE INDEX ix_tokens_account_id_user_id ON tokens (account_id, user_id);
CREATE INDEX ix_computations_account_id_start_us ON computations (account_id, start_us);
CREATE INDEX ix_computations_run_id_start_us ON computations (run_id, start_us);
CREATE INDEX ix_days_account_id_day ON days (account_id, day);
CREATE INDEX ix_exceptions_account_id_fingerprint_run_id_user ON exceptions (account_id, fingerprint, run_id, user);
CREATE INDEX ix_exceptions_account_id_fingerprint_time_us ON exceptions (account_id, fingerprint, time_us);
CREATE INDEX ix_exceptions_account_id_time_us ON exceptions (account_id, time_us);
CREATE INDEX ix_exceptions_run_id_time_us ON exceptions (run_id, time_us);
CREATE INDEX ix_files_run_id_name ON files (run_id, name);
CREATE INDEX ix_computations_account_id_code_digest_start_us ON computations (account_id, code_digest, start_us);
CREATE INDEX ix_tokens_parent ON tokens (parent);
CREATE INDEX ix_computations_account_id_seen_us ON computations (account_id, seen_us);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('accounts',1);
INSERT INTO "sqlite_sequence" VALUES('runs',3);
INSERT INTO "sqlite_sequence" VALUES('users',1);
INSERT INTO "sqlite_sequence" VALUES('tokens',1);
COMMIT;
