-- The tables as the first gonogo that knew Postgres made them.

create table gonogo_schema (version int not null);

create table gonogo_runs (
    run_id text collate "C" primary key,
    epoch bigint not null default 1,
    first_seq bigint,
    next_seq bigint,
    workflow text not null default '',
    event text,
    parent text,
    started_at_ms bigint not null default 0,
    last_at double precision not null default 0,
    verdict text,
    submitted bytea,
    owner_host text,
    owner_pid int,
    owner_since_ms bigint,
    owner_backend int,
    owner_token bytea
) with (fillfactor = 70);

create table gonogo_records (
    run_id text collate "C" not null references gonogo_runs on delete cascade,
    seq bigint not null,
    line bytea not null,
    primary key (run_id, seq)
);

create table gonogo_blobs (
    run_id text collate "C" not null references gonogo_runs on delete cascade,
    digest text collate "C" not null,
    data bytea not null,
    primary key (run_id, digest)
);
alter table gonogo_blobs alter column data set storage external;

create table gonogo_inbox (
    id bigint generated always as identity primary key,
    run_id text collate "C" not null references gonogo_runs on delete cascade,
    token bytea not null unique,
    request bytea not null,
    refused boolean not null default false
);
create index gonogo_inbox_waiting on gonogo_inbox (run_id, id) where not refused;

create table gonogo_tickets (
    run_id text collate "C" not null,
    call bigint not null,
    seq bigint not null,
    command bytea not null,
    label text not null,
    claims int not null default 0,
    claimed bytea,
    left_by bytea,
    worker text,
    stop boolean not null default false,
    ended boolean not null default false,
    primary key (run_id, call)
);
create index gonogo_tickets_to_stop on gonogo_tickets (worker) where stop and not ended;

create table gonogo_pools (run_id text collate "C" primary key);

create table gonogo_answers (
    id bigint generated always as identity primary key,
    run_id text collate "C" not null,
    call bigint not null,
    event bytea not null
);
create index gonogo_answers_of_run on gonogo_answers (run_id, id);

create table gonogo_breakers (
    key text collate "C" primary key,
    version bigint not null,
    sheet bytea not null
);

insert into gonogo_schema values (1);
