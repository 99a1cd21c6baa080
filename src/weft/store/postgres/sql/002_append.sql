-- One group of commits: many jobs of one process in one round trip and one transaction.
--
-- A job is one call of `append`: all of its appends are stored, or none.  A refused job takes its
-- own appends back in memory and not by a savepoint: beyond 64 of those Postgres slows down.
-- The commit number of the process makes the call safe to repeat after a lost answer: the same
-- number again returns the first outcome.  Locks are taken in one order by all: the row of the
-- process, the blobs' lock, streams by name.
create function append_v1(
    p_tenant integer,
    p_process bigint,
    p_commit bigint,
    u_stream text[],
    a_job integer[], a_which integer[], a_expected bigint[], a_count integer[], a_fence bigint[],
    a_drops boolean[],
    f_app integer[], f_seq bigint[], f_at double precision[], f_kind text[], f_body bytea[],
    r_app integer[], r_parent text[], r_project text[], r_active double precision[],
    r_child boolean[], r_archived boolean[], r_reader integer[], r_wake double precision[],
    r_words text[], r_row bytea[],
    s_app integer[], s_node text[], s_text bytea[], s_words text[], s_tokens text[],
    b_app integer[], b_id text[], b_data bytea[], b_ref text[],
    n_app integer[], n_id text[],
    t_app integer[], t_id text[], t_kind text[],
    e_app integer[], e_node text[],
    d_after integer[], d_which integer[], d_fence bigint[], d_node text[], d_part text[],
    d_chunk bytea[], d_restart boolean[],
    out outcome text,
    out watched bigint[]
) language plpgsql as $append$
#variable_conflict error
declare
    last_done bigint;
    stream_nos bigint[];
    ends bigint[];
    ends_before bigint[];
    fences bigint[];
    holders bigint[];
    is_ok boolean[] := '{}';
    refused jsonb := '[]';
    absent text[] := '{}';
    brought text[] := '{}';
    job integer := -1;
    first_of_job integer := 1;
    is_refused boolean := false;
    saved_ends bigint[];
    which integer;
    lacking text;
begin
    update processes p set last_commit = p_commit, last_outcome = '[]', seen = clock_timestamp()
        where p.tenant = p_tenant and p.process_no = p_process and p.last_commit = p_commit - 1;
    if not found then
        -- Answered again, it is a sign of life as well: the caller counts on that.
        update processes p set seen = clock_timestamp()
            where p.tenant = p_tenant and p.process_no = p_process
            returning p.last_commit, p.last_outcome into last_done, outcome;
        if last_done is null then
            outcome := 'gone';
        elsif last_done <> p_commit then
            outcome := 'lost ' || last_done;
        end if;
        watched := '{}';
        return;
    end if;

    -- A sweep of blobs takes this lock alone: what is named here cannot be swept meanwhile.
    if cardinality(b_id) + cardinality(n_id) + cardinality(t_id) > 0 then
        perform pg_advisory_xact_lock_shared(1465206900, p_tenant);
    end if;

    -- Streams of projects take appends from anyone, and begin with the first.
    if array_position(a_fence, null) is not null then
        insert into streams (tenant, name)
            select distinct p_tenant, u_stream[a.which]
            from unnest(a_which, a_fence) a(which, fence) where a.fence is null
            order by 2
            on conflict (tenant, name) do nothing;
    end if;
    with locked as materialized (
        select s.name, s.stream_no, s.last_seq, s.fence, s.process_no
        from streams s where s.tenant = p_tenant and s.name = any (u_stream)
        order by s.name for update
    )
    select
        array_agg(coalesce(l.stream_no, 0) order by u.place),
        array_agg(coalesce(l.last_seq, 0) order by u.place),
        array_agg(coalesce(l.fence, 0) order by u.place),
        array_agg(coalesce(l.process_no, 0) order by u.place)
    into stream_nos, ends, fences, holders
    from unnest(u_stream) with ordinality u(name, place) left join locked l on l.name = u.name;
    ends_before := ends;

    if cardinality(n_id) > 0 then
        select coalesce(array_agg(distinct n.id), '{}') into absent
            from unnest(n_id) n(id)
            where not exists (select 1 from blobs b where b.tenant = p_tenant and b.id = n.id);
    end if;

    for one in 1 .. cardinality(a_job) loop
        if a_job[one] <> job then
            job := a_job[one];
            first_of_job := one;
            is_refused := false;
            saved_ends := ends;
        end if;
        is_ok := array_append(is_ok, not is_refused);
        continue when is_refused;
        which := a_which[one];
        if a_fence[one] is not null
           and (holders[which] <> p_process or fences[which] <> a_fence[one]) then
            is_refused := true;
            refused := refused || jsonb_build_array(
                jsonb_build_array(job, 'fenced', which, a_fence[one], fences[which]));
        elsif ends[which] <> a_expected[one] then
            is_refused := true;
            refused := refused || jsonb_build_array(
                jsonb_build_array(job, 'conflict', which, a_expected[one], ends[which]));
        else
            ends[which] := a_expected[one] + a_count[one];
        end if;
        -- With the last append of a job: what it names must be there, or come with it.
        if not is_refused and (one = cardinality(a_job) or a_job[one + 1] <> job) then
            if cardinality(absent) > 0 then
                select brought || coalesce(array_agg(b.id), '{}') into brought
                    from unnest(b_app, b_id) b(app, id) where b.app between first_of_job and one;
                select n.id into lacking from unnest(n_app, n_id) n(app, id)
                    where n.app between first_of_job and one
                      and n.id = any (absent) and not n.id = any (brought)
                    limit 1;
                if found then
                    is_refused := true;
                    refused := refused || jsonb_build_array(
                        jsonb_build_array(job, 'blob', which, 0, 0, lacking));
                end if;
            end if;
        end if;
        if is_refused then
            ends := saved_ends;
            for back in first_of_job .. one loop
                is_ok[back] := false;
            end loop;
        end if;
    end loop;

    insert into facts (tenant, stream_no, seq, at, kind, body)
        select p_tenant, stream_nos[a_which[f.app]], f.seq, f.at, f.kind, f.body
        from unnest(f_app, f_seq, f_at, f_kind, f_body) f(app, seq, at, kind, body)
        where is_ok[f.app];
    update streams s set last_seq = x.last_seq
        from unnest(stream_nos, ends, ends_before) x(stream_no, last_seq, before)
        where s.tenant = p_tenant and s.stream_no = x.stream_no and x.last_seq <> x.before;
    if cardinality(r_app) > 0 then
        perform put_rows_v1(
            p_tenant, stream_nos, u_stream, a_which, is_ok, r_app, r_parent, r_project, r_active,
            r_child, r_archived, r_reader, r_wake, r_words, r_row);
    end if;
    if cardinality(s_app) > 0 then
        insert into said (tenant, stream_no, node, text, words, tokens)
            select p_tenant, stream_nos[a_which[s.app]], s.node, s.text, s.words,
                array_to_tsvector(string_to_array(s.tokens, ' '))
            from unnest(s_app, s_node, s_text, s_words, s_tokens) with ordinality
                s(app, node, text, words, tokens, place)
            where is_ok[s.app] order by s.place;
    end if;
    if cardinality(b_id) + cardinality(n_id) + cardinality(t_id) > 0 then
        perform keep_blobs_v1(
            p_tenant, stream_nos, a_which, is_ok, b_app, b_id, b_data, b_ref, n_app, n_id,
            t_app, t_id, t_kind);
    end if;
    if cardinality(e_app) + cardinality(d_which) > 0 or true = any (a_drops) then
        perform keep_drafts_v1(
            p_tenant, p_process, stream_nos, fences, holders, a_which, is_ok, a_drops, e_app,
            e_node, d_after, d_which, d_fence, d_node, d_part, d_chunk, d_restart);
    end if;
    if refused <> '[]' then
        update processes p set last_outcome = refused::text
            where p.tenant = p_tenant and p.process_no = p_process;
    end if;
    outcome := refused::text;
    select coalesce(array_agg(s.stream_no), '{}') into watched
        from unnest(stream_nos, ends, ends_before) x(stream_no, last_seq, before)
        join streams s on s.tenant = p_tenant and s.stream_no = x.stream_no
        where x.last_seq <> x.before and s.watched_until > clock_timestamp();
end
$append$;

-- The rows of a group.  Of several for one session the last counts.
create function put_rows_v1(
    p_tenant integer, stream_nos bigint[], u_stream text[], a_which integer[], is_ok boolean[],
    r_app integer[], r_parent text[], r_project text[], r_active double precision[],
    r_child boolean[], r_archived boolean[], r_reader integer[], r_wake double precision[],
    r_words text[], r_row bytea[]
) returns void language plpgsql as $rows$
#variable_conflict error
begin
    insert into sessions as kept (
        tenant, stream_no, id, parent_id, project_path, last_active, is_child, archived,
        min_reader, wake_at, title_words, row
    )
    select distinct on (a_which[r.app])
        p_tenant, stream_nos[a_which[r.app]], u_stream[a_which[r.app]], r.parent, r.project,
        r.active, r.child, r.archived, r.reader, r.wake, r.words, r.body
    from unnest(
        r_app, r_parent, r_project, r_active, r_child, r_archived, r_reader, r_wake, r_words,
        r_row
    ) r(app, parent, project, active, child, archived, reader, wake, words, body)
    where is_ok[r.app] order by a_which[r.app], r.app desc
    on conflict (tenant, stream_no) do update set
        parent_id = excluded.parent_id, project_path = excluded.project_path,
        last_active = excluded.last_active, is_child = excluded.is_child,
        archived = excluded.archived, min_reader = excluded.min_reader,
        wake_at = excluded.wake_at, title_words = excluded.title_words, row = excluded.row;
    update streams s set is_hidden = false, hidden_parent = null
        from unnest(r_app) r(app)
        where s.tenant = p_tenant and s.stream_no = stream_nos[a_which[r.app]] and is_ok[r.app]
          and s.is_hidden;
end
$rows$;

-- The blobs of a group, and who names them.  `b_ref` is own, history, or nothing for what only the
-- trees of the project name.
create function keep_blobs_v1(
    p_tenant integer, stream_nos bigint[], a_which integer[], is_ok boolean[],
    b_app integer[], b_id text[], b_data bytea[], b_ref text[],
    n_app integer[], n_id text[], t_app integer[], t_id text[], t_kind text[]
) returns void language plpgsql as $blobs$
#variable_conflict error
begin
    insert into blobs (tenant, id, size, data)
        select distinct on (b.id) p_tenant, b.id, length(b.data), b.data
        from unnest(b_app, b_id, b_data) b(app, id, data) where is_ok[b.app] order by b.id
        on conflict do nothing;
    insert into blob_refs (tenant, stream_no, blob_no)
        select distinct p_tenant, stream_nos[a_which[x.app]], k.blob_no
        from (
            select b.app, b.id from unnest(b_app, b_id, b_ref) b(app, id, ref) where b.ref = 'own'
            union all select n.app, n.id from unnest(n_app, n_id) n(app, id)
            union all
            select t.app, t.id from unnest(t_app, t_id, t_kind) t(app, id, kind)
            where t.kind = 'tree'
        ) x join blobs k on k.tenant = p_tenant and k.id = x.id
        where is_ok[x.app] order by 2, 3
        on conflict do nothing;
    insert into history_refs (tenant, stream_no, blob_no)
        select p_tenant, x.stream_no, x.blob_no from (
            select stream_nos[a_which[b.app]] as stream_no, k.blob_no, min(b.place) as place
            from unnest(b_app, b_id, b_ref) with ordinality b(app, id, ref, place)
            join blobs k on k.tenant = p_tenant and k.id = b.id
            where b.ref = 'history' and is_ok[b.app] group by 1, 2
        ) x order by x.place
        on conflict do nothing;
    if cardinality(t_id) > 0 then
        perform keep_trees_v1(
            p_tenant, stream_nos, a_which, is_ok, t_app, t_id, t_kind);
    end if;
end
$blobs$;

-- Listings and contents in trees are named once for the project of their session.
create function keep_trees_v1(
    p_tenant integer, stream_nos bigint[], a_which integer[], is_ok boolean[],
    t_app integer[], t_id text[], t_kind text[]
) returns void language plpgsql as $trees$
#variable_conflict error
begin
    insert into streams (tenant, name)
        select distinct p_tenant, files_of_v1(p_tenant, stream_nos[a_which[t.app]])
        from unnest(t_app) t(app) where is_ok[t.app] order by 2
        on conflict (tenant, name) do nothing;
    -- One process at a time: contents are named in the order of their age, not in one for locks.
    perform 1 from streams s
        where s.tenant = p_tenant and s.name in (
            select files_of_v1(p_tenant, stream_nos[a_which[t.app]])
            from unnest(t_app) t(app) where is_ok[t.app])
        order by s.name for update;
    insert into blob_refs (tenant, stream_no, blob_no)
        select distinct p_tenant, f.stream_no, k.blob_no
        from unnest(t_app, t_id, t_kind) t(app, id, kind)
        join streams f
            on f.tenant = p_tenant and f.name = files_of_v1(p_tenant, stream_nos[a_which[t.app]])
        join blobs k on k.tenant = p_tenant and k.id = t.id
        where t.kind = 'listing' and is_ok[t.app] order by 2, 3
        on conflict do nothing;
    insert into history_refs (tenant, stream_no, blob_no)
        select p_tenant, x.stream_no, x.blob_no from (
            select f.stream_no, k.blob_no, min(t.place) as place
            from unnest(t_app, t_id, t_kind) with ordinality t(app, id, kind, place)
            join streams f
                on f.tenant = p_tenant
                and f.name = files_of_v1(p_tenant, stream_nos[a_which[t.app]])
            join blobs k on k.tenant = p_tenant and k.id = t.id
            where t.kind = 'content' and is_ok[t.app] group by 1, 2
        ) x order by x.place
        on conflict do nothing;
end
$trees$;

-- The name under which the files in the trees of a session's project are kept.
create function files_of_v1(p_tenant integer, p_stream bigint) returns text
language sql stable as $files$
    select 'project:files:' || coalesce(
        (select s.project_path from sessions s where s.tenant = p_tenant and s.stream_no = p_stream),
        ''
    )
$files$;

-- Text in flight.  `d_after` is how many appends of the group were handed in before a chunk: one
-- that comes later and ends the draft takes the chunk with it, and so does a later restart.
create function keep_drafts_v1(
    p_tenant integer, p_process bigint, stream_nos bigint[], fences bigint[], holders bigint[],
    a_which integer[], is_ok boolean[], a_drops boolean[], e_app integer[], e_node text[],
    d_after integer[], d_which integer[], d_fence bigint[], d_node text[], d_part text[],
    d_chunk bytea[], d_restart boolean[]
) returns void language plpgsql as $drafts$
#variable_conflict error
begin
    delete from drafts k
        using unnest(a_which, a_drops, is_ok) a(which, drops, ok)
        where a.drops and a.ok and k.tenant = p_tenant and k.stream_no = stream_nos[a.which];
    delete from drafts k
        using unnest(e_app, e_node) e(app, node)
        where is_ok[e.app] and k.tenant = p_tenant
          and k.stream_no = stream_nos[a_which[e.app]] and k.node = e.node;
    delete from drafts k
        using unnest(d_which, d_fence, d_node, d_restart) d(which, fence, node, restarts)
        where d.restarts and fences[d.which] = d.fence and holders[d.which] = p_process
          and k.tenant = p_tenant and k.stream_no = stream_nos[d.which] and k.node = d.node;
    insert into drafts (tenant, stream_no, node, part, chunk)
        select p_tenant, stream_nos[d.which], d.node, d.part, d.chunk
        from unnest(d_after, d_which, d_fence, d_node, d_part, d_chunk) with ordinality
            d(after_app, which, fence, node, part, chunk, place)
        where fences[d.which] = d.fence and holders[d.which] = p_process and length(d.chunk) > 0
          and not exists (
              select 1 from unnest(e_app, e_node) e(app, node)
              where e.app > d.after_app and is_ok[e.app] and a_which[e.app] = d.which
                and e.node = d.node)
          and not exists (
              select 1 from unnest(a_which, a_drops, is_ok) with ordinality
                  a(which, drops, ok, place)
              where a.place > d.after_app and a.drops and a.ok and a.which = d.which)
          and not exists (
              select 1 from unnest(d_which, d_node, d_restart) with ordinality
                  later(which, node, restarts, place)
              where later.restarts and later.place > d.place and later.which = d.which
                and later.node = d.node)
        order by d.place;
end
$drafts$;

-- Whether a process may still hold its leases: by its last sign of life and the clock of the
-- database; where it holds its advisory lock, one that is gone tells of its death sooner.
create function is_alive_v1(
    p_tenant integer, p_process bigint, p_ttl double precision, p_grace double precision
) returns boolean language plpgsql volatile as $alive$
#variable_conflict error
declare
    age double precision;
    locks boolean;
begin
    select extract(epoch from clock_timestamp() - p.seen), exists (
            select 1 from held_locks h where h.tenant = p_tenant and h.process_no = p_process
        ) into age, locks
        from processes p where p.tenant = p_tenant and p.process_no = p_process;
    if age is null or age > p_ttl then
        return false;
    end if;
    -- A restart of the database ended all connections: that says nothing of a process that was
    -- last heard of before.
    if not locks or age <= p_grace
       or age > extract(epoch from clock_timestamp() - pg_postmaster_start_time()) then
        return true;
    end if;
    return not pg_try_advisory_xact_lock_shared(p_process + (1465206900::bigint << 32));
end
$alive$;
