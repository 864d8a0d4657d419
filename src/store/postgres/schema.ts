import { renamedColumns } from '../sql/database/renamed-columns.ts';
import { code } from '../sql/values/codes.ts';

/**
 * The tables, one step a format; steps are only added, never changed. They are those of the SQLite store, and a later step
 * renames some columns of the first: see `renamedColumns`. Bodies are text:
 * jsonb would reorder keys, rewrite numbers and refuse some strings, and the hash would not fit any more.
 */
export const steps: readonly string[] = [
  `
  CREATE TABLE @sessions(
    no bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    owner text COLLATE "C" NOT NULL,           -- '' for no owner
    agent text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,              -- chosen by the caller
    head bigint,                               -- snapshots.no, always a succeeded one
    tip bigint,                                -- the snapshot placed last; only what continues from it continues in place
    next_index integer NOT NULL DEFAULT 0,
    title text,
    metadata text,
    forked_from text,
    started_by_agent text COLLATE "C",
    started_by_session text COLLATE "C",
    started_by_snapshot text,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL);               -- in no index, so that a turn's update stays on its page (HOT)
  CREATE UNIQUE INDEX sessions_id ON @sessions(owner, agent, id);
  CREATE INDEX sessions_started_by ON @sessions(owner, started_by_agent, started_by_session)
    WHERE started_by_session IS NOT NULL;

  CREATE TABLE @branches(                      -- a line of snapshots, each continuing from the one before
    no bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    session bigint NOT NULL,                   -- whose snapshots lie on it; the session may be gone
    parent bigint,                             -- the branch it left
    fork integer,                              -- the parent's rows up to here belong to it; NULL: none by themselves
    fork_view bigint,                          -- under this view of them
    fork_snapshot bigint);                     -- the last snapshot on the parent that is on its path
  CREATE INDEX branches_parent ON @branches(parent) WHERE parent IS NOT NULL;

  CREATE TABLE @views(                         -- a history that was trimmed or rewritten
    no bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    branch bigint NOT NULL,
    own_from integer NOT NULL,                 -- the branch's rows from here on belong to it
    common integer NOT NULL,                   -- how many messages at its beginning are those of the path before
    base text NOT NULL,                        -- and before them [[branch, from, to], ...]; branch 0 is its own
    PRIMARY KEY(branch, no));
  CREATE TABLE @view_refs(                     -- which view holds rows of which other branch
    branch bigint NOT NULL, view bigint NOT NULL,
    of bigint NOT NULL,                        -- the view's own branch
    PRIMARY KEY(branch, view));

  CREATE TABLE @messages(
    id bigint PRIMARY KEY,                     -- branch * 2^22 + row
    body text NOT NULL);

  CREATE TABLE @blobs(                         -- custom states, lists of artifacts, large parts of artifacts
    no bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    hash bytea,                                -- content address; a patch has none
    prev bigint,                               -- the body is a patch to this one
    body text NOT NULL);
  CREATE UNIQUE INDEX blobs_hash ON @blobs(hash) WHERE hash IS NOT NULL;
  CREATE INDEX blobs_prev ON @blobs(prev) WHERE prev IS NOT NULL;
  CREATE TABLE @blob_parts(                    -- which list of artifacts names which large part
    part bigint NOT NULL, list bigint NOT NULL, PRIMARY KEY(part, list));

  CREATE TABLE @snapshots(
    no bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    session bigint NOT NULL,
    parent bigint,
    branch bigint,                             -- the messages: rows of this branch
    view bigint,                               -- under this view; NULL: the parent branch's before them
    custom bigint,
    artifacts bigint,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    ttl bigint,                                -- of a pending one without a run
    upto integer NOT NULL,                     -- the branch's rows up to here
    length integer NOT NULL,
    idx integer,                               -- NULL: not listed
    turn integer NOT NULL,
    partial integer,                           -- of an aborted one: the attempt that may still add what it had reached
    event smallint NOT NULL,
    status smallint NOT NULL,
    finish smallint,
    id bytea UNIQUE,                           -- NULL: the checkpoint of a run
    state_hash bytea NOT NULL,
    usage text,
    totals text,
    error text,
    label text);
  CREATE INDEX snapshots_session ON @snapshots(session, idx);
  CREATE INDEX snapshots_custom ON @snapshots(custom) WHERE custom IS NOT NULL;
  CREATE INDEX snapshots_artifacts ON @snapshots(artifacts) WHERE artifacts IS NOT NULL;

  CREATE TABLE @runs(                          -- while it is open; one a session
    session bigint PRIMARY KEY,
    start bigint,                              -- snapshots.no it was claimed from
    base bigint,                               -- the last committed one it continues from
    own bigint,                                -- the listed pending snapshot of a detached run
    checkpoint bigint,                         -- the state it had reached
    ttl bigint NOT NULL,
    heartbeat bigint NOT NULL,
    created_at bigint NOT NULL,
    attempt integer NOT NULL,
    turn integer NOT NULL,
    inputs_done integer NOT NULL DEFAULT 0,
    mode smallint NOT NULL,
    mid_turn smallint NOT NULL DEFAULT 0,
    stopping smallint NOT NULL DEFAULT 0,
    id bytea NOT NULL UNIQUE,                  -- the reserved snapshot id
    worker text NOT NULL,
    request text NOT NULL);
  CREATE TABLE @journal(                       -- of a run: its events, one row a flush, its steps, its end
    session bigint NOT NULL,
    ended_at bigint,                           -- of its end, which is kept with the events for a while
    attempt integer NOT NULL, seq integer NOT NULL, last integer NOT NULL, run bytea NOT NULL,
    body text NOT NULL, PRIMARY KEY(run, attempt, seq));

  CREATE TABLE @trash(                         -- what may have become unreachable and is still to be looked at
    kind smallint NOT NULL, no bigint NOT NULL, PRIMARY KEY(kind, no));
  `,
  // Rows come in the order of these keys and are never put between others, so room for that would stay empty.
  `
  ALTER INDEX @messages_pkey SET (fillfactor = 100);
  ALTER INDEX @snapshots_pkey SET (fillfactor = 100);
  `,
  // Had the functions of a turn, which the last step makes.
  '',
  // Encrypted values are bound to their places, which older versions cannot read.
  `COMMENT ON TABLE @meta IS 'A store of waymark';`,
  // Crashes of the workers of a run, and the dead-letter queue.
  `
  ALTER TABLE @runs ADD COLUMN crashes integer NOT NULL DEFAULT 0; -- workers that died since its last progress
  ALTER TABLE @runs ADD COLUMN crashed text;   -- of each, its attempt and its last heartbeat: 1:1763200000000,2:…
  CREATE TABLE @dead_runs(                     -- runs that were given up
    session bigint NOT NULL,
    since bigint NOT NULL,
    inputs_done integer NOT NULL,
    mode smallint NOT NULL,
    run bytea PRIMARY KEY,                     -- snapshots.id; the snapshot may be gone
    request text NOT NULL);
  `,
  // Had a function for snapshots within a turn.
  '',
  // Idempotency keys.
  `
  CREATE TABLE @requests(                      -- idempotency keys, for a day after the end of their run
    session bigint NOT NULL,
    at bigint NOT NULL,                        -- when it was claimed, or ended with a receipt
    key bytea PRIMARY KEY,                     -- hash of owner, agent and request id
    run bytea NOT NULL,                        -- the reserved snapshot id
    digest bytea NOT NULL,                     -- of what was asked for
    receipt text);                             -- what the run came to
  CREATE INDEX requests_session ON @requests(session);
  CREATE INDEX requests_at ON @requests(at);
  `,
  // Names that say what a column holds.
  [
    ...renamedColumns.map(
      ({ table, from, to }) => `ALTER TABLE @${table} RENAME COLUMN "${from}" TO ${to};`,
    ),
    'DROP FUNCTION IF EXISTS @claim_turn, @claim_request, @commit_turn, @commit_within;',
  ].join('\n'),
  // Full-text search.
  `
  CREATE TABLE @search(                        -- the different words in the messages of a session; made when it is searched
    session bigint PRIMARY KEY,
    head bigint NOT NULL,                      -- snapshots.row_id of the state that they are of
    words tsvector NOT NULL);
  CREATE INDEX search_head ON @search(head);
  CREATE INDEX search_words ON @search USING gin(words);
  CREATE FUNCTION @drop_outdated_words() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    DELETE FROM @search x USING gone WHERE x.head = gone.row_id;
    RETURN NULL;
  END $$;
  CREATE TRIGGER search_outdated AFTER DELETE ON @snapshots REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION @drop_outdated_words();
  `,
  // Had a function of a turn.
  '',
  // Spend.
  `
  CREATE TABLE @spend(                         -- counters; one row is added to by each turn of a session on a day
    day bigint NOT NULL,                       -- since 1970
    calls bigint NOT NULL,
    input bigint NOT NULL, output bigint NOT NULL, total bigint NOT NULL, reasoning bigint NOT NULL,
    cache_read bigint NOT NULL, cache_write bigint NOT NULL,
    micros bigint NOT NULL,                    -- millionths of a unit of the currency
    owner text COLLATE "C" NOT NULL, agent text COLLATE "C" NOT NULL, session text COLLATE "C" NOT NULL,
    by_agent text COLLATE "C" NOT NULL,        -- the agent that called the model: the session's, or a sub-agent
    model text COLLATE "C" NOT NULL,
    currency text COLLATE "C" NOT NULL,        -- '' for no price
    PRIMARY KEY(owner, agent, session, by_agent, model, currency, day));
  `,
  // Finds the sessions that wait for an answer.
  `CREATE INDEX snapshots_interrupted ON @snapshots(session) WHERE finish = ${code.interrupted};`,
  // Data of artifacts as bytes, instead of base64. Compressing them would gain nothing in most, and cost time in all.
  `
  ALTER TABLE @blobs ADD COLUMN bytes bytea;
  ALTER TABLE @blobs ALTER COLUMN bytes SET STORAGE EXTERNAL;
  `,
  // Had a function of a turn.
  '',
  // Had the functions of a turn. Where there are some, they stay: processes of an older version may still use them.
  '',
  // Files in pieces. An older version would not see that a list of artifacts names them.
  `COMMENT ON TABLE @blob_parts IS 'Which list names which part; a negative list is a run that holds it';`,
  // Budgets reserve what a model call may cost.
  `
  CREATE TABLE @reservations(                  -- of calls that have not ended, or whose process died
    amount bigint NOT NULL,
    day bigint NOT NULL,                       -- since 1970
    expires_at bigint NOT NULL,                -- from then on the call is lost
    is_bound smallint NOT NULL,                -- 1: the call cannot use more; 0: a guess
    owner text COLLATE "C" NOT NULL, agent text COLLATE "C" NOT NULL, session text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    holder text COLLATE "C" NOT NULL,          -- the run of the session
    currency text COLLATE "C" NOT NULL,        -- '' for tokens
    PRIMARY KEY(owner, agent, session, id, currency));
  `,
  // Writes are sent to a function that is made when a store is opened. An older version would miss the functions of a turn.
  '',
  // Memory across sessions. What came from a session goes with it, and the later versions of the same entries.
  `
  CREATE TABLE @memory(                        -- versions of entries
    row_id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    session bigint,                            -- its source; NULL: added outside of a turn
    seq bigint,                                -- its number in the lane of the session
    created_at bigint NOT NULL,
    message integer,                           -- the index of a message of its session
    scope text COLLATE "C" NOT NULL,           -- the memory, and whose entries they are
    id text COLLATE "C" NOT NULL,
    entry text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,           -- who wrote it; '' for no owner
    snapshot bytea,                            -- snapshots.id; the snapshot may be gone
    body text);                                -- NULL: the entry is forgotten
  CREATE INDEX memory_scope ON @memory(scope, row_id);
  CREATE INDEX memory_entry ON @memory(entry);
  CREATE INDEX memory_owner ON @memory(owner);
  CREATE INDEX memory_session ON @memory(session, seq) WHERE session IS NOT NULL;
  CREATE TABLE @memory_sessions(               -- sessions that may have versions
    session bigint PRIMARY KEY,
    family text COLLATE "C" NOT NULL,          -- of a session and its forks
    lane text COLLATE "C" NOT NULL);           -- names the session on paths
  CREATE INDEX memory_family ON @memory_sessions(family);
  CREATE TABLE @memory_notes(                  -- what a snapshot, or the checkpoint of a run, records
    session bigint NOT NULL,
    created_at bigint NOT NULL,
    snapshot bytea PRIMARY KEY,                -- snapshots.id, or that of a run
    path text NOT NULL,                        -- the visible versions: [[lane, from, to], ...]
    given text NOT NULL,                       -- ids of the versions in the prompt
    pending text);                             -- versions that are written when the turn ends
  CREATE INDEX memory_notes_session ON @memory_notes(session);
  CREATE FUNCTION @drop_memory() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    DELETE FROM @memory WHERE row_id IN (
      SELECT m.row_id FROM gone g JOIN @memory x ON x.session = g.row_id
      JOIN @memory m ON m.entry = x.entry AND m.row_id >= x.row_id);
    DELETE FROM @memory_notes n USING gone g WHERE n.session = g.row_id;
    DELETE FROM @memory_sessions f USING gone g WHERE f.session = g.row_id;
    RETURN NULL;
  END $$;
  CREATE TRIGGER memory_source_removed AFTER DELETE ON @sessions REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION @drop_memory();
  `,
  // Effects that can be undone.
  `
  CREATE TABLE @effects(                       -- calls with an effect in another system; a fork has those of its source
    row_id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    session bigint NOT NULL,
    at bigint NOT NULL,                        -- when it began
    undone_at bigint,
    key bytea NOT NULL,                        -- the idempotency key of the call
    run bytea NOT NULL,                        -- the reserved snapshot id of its run
    body text NOT NULL);                       -- the tool, the input and, once it is known, the output
  CREATE UNIQUE INDEX effects_key ON @effects(key, session);
  CREATE INDEX effects_session ON @effects(session);
  `,
];
