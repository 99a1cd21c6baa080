-- Tables of the first version.  The tenant stands first in every key.

create table tenants (
    tenant integer generated always as identity primary key,
    name text collate "C" not null unique
);

-- One row for each opened store: who it is, when it was last heard of, and the number and the
-- outcome of its last commit, which make a lost answer decidable.
create table processes (
    tenant integer not null,
    process_no bigint generated always as identity,
    process_id text collate "C" not null,
    pid integer not null,
    started double precision not null,
    host text not null,
    boot_id text not null,
    address text not null default '',
    accepting boolean not null default true,
    slot text not null default '',
    load real not null default 0,
    seen timestamptz not null default clock_timestamp(),
    last_commit bigint not null default 0,
    last_outcome text not null default '[]',
    primary key (tenant, process_no),
    unique (tenant, process_id)
) with (fillfactor = 50);

-- The processes that hold their advisory lock.  Unlogged, because a crash and a failover end all
-- locks: they empty this table too, so that a lock which is gone by them tells of no death.
create unlogged table held_locks (
    tenant integer not null,
    process_no bigint not null,
    primary key (tenant, process_no)
);

create table streams (
    tenant integer not null,
    stream_no bigint generated always as identity,
    name text collate "C" not null,
    last_seq bigint not null default 0,
    fence bigint not null default 0,
    process_no bigint,
    taken double precision not null default 0,
    is_hidden boolean not null default false,
    hidden_parent text collate "C",
    watched_until timestamptz,
    primary key (tenant, stream_no),
    unique (tenant, name)
) with (fillfactor = 70);
create index streams_held on streams (tenant, process_no) where process_no is not null;
create index streams_hidden on streams (tenant, hidden_parent) where is_hidden;

create table facts (
    tenant integer not null,
    stream_no bigint not null,
    seq bigint not null,
    at double precision not null,
    kind text collate "C" not null,
    body bytea not null,
    primary key (tenant, stream_no, seq)
);

-- What a list shows.  `wake_at` is null for what is never woken: no wait, or damaged.
create table sessions (
    tenant integer not null,
    stream_no bigint not null,
    id text collate "C" not null,
    parent_id text collate "C",
    project_path text collate "C" not null,
    last_active double precision not null,
    is_child boolean not null,
    archived boolean not null,
    min_reader integer not null,
    wake_at double precision,
    title_words text not null,
    row bytea not null,
    primary key (tenant, stream_no),
    unique (tenant, id)
) with (fillfactor = 70);
create index sessions_listed on sessions (tenant, last_active desc, id desc);
create index sessions_by_project on sessions (tenant, project_path);
create index sessions_forks on sessions (tenant, parent_id) where parent_id is not null;
create index sessions_due on sessions (tenant, wake_at, id) where wake_at is not null;

-- `tokens` has no positions: they end at 16,383.  A phrase is looked for in `words`.
create table said (
    tenant integer not null,
    stream_no bigint not null,
    said_no bigint generated always as identity,
    node text collate "C" not null,
    text bytea not null,
    words text not null,
    tokens tsvector not null,
    primary key (tenant, said_no)
);
create index said_by_stream on said (tenant, stream_no);
create index said_by_node on said (tenant, node);
create index said_words on said using gin (tokens);

-- Content of large objects is not compressed: it is read and written as it is.
create table blobs (
    tenant integer not null,
    blob_no bigint generated always as identity,
    id text collate "C" not null,
    size bigint not null,
    data bytea not null,
    primary key (tenant, blob_no),
    unique (tenant, id)
);
alter table blobs alter column data set storage external;

create table blob_refs (
    tenant integer not null,
    stream_no bigint not null,
    blob_no bigint not null,
    primary key (tenant, stream_no, blob_no)
);
create index blob_refs_by_blob on blob_refs (tenant, blob_no);

-- Blobs that are named as file history only; the number tells the oldest.
create table history_refs (
    tenant integer not null,
    kept_no bigint generated always as identity,
    stream_no bigint not null,
    blob_no bigint not null,
    primary key (tenant, kept_no),
    unique (tenant, stream_no, blob_no)
);
create index history_refs_by_blob on history_refs (tenant, blob_no);

-- A courtesy after a crash of a host; a crash of the database may lose it, and it costs no log.
create unlogged table drafts (
    tenant integer not null,
    stream_no bigint not null,
    chunk_no bigint generated always as identity,
    node text collate "C" not null,
    part text collate "C" not null,
    chunk bytea not null,
    primary key (tenant, stream_no, chunk_no)
);

create table snapshots (
    tenant integer not null,
    stream_no bigint not null,
    seq bigint not null,
    version text collate "C" not null,
    data bytea not null,
    primary key (tenant, stream_no)
);
alter table snapshots alter column data set storage external;

-- The second wall between tenants: the first one is that every statement names its tenant.
do $walls$
declare
    one text;
begin
    foreach one in array array[
        'processes', 'held_locks', 'streams', 'facts', 'sessions', 'said', 'blobs', 'blob_refs', 'history_refs',
        'drafts', 'snapshots'
    ] loop
        execute format('alter table %I enable row level security', one);
        execute format('alter table %I force row level security', one);
        execute format(
            'create policy own_tenant on %I
                 using (tenant = nullif(current_setting(''weft.tenant'', true), '''')::integer)',
            one
        );
    end loop;
end
$walls$;
