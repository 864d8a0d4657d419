import { renamedColumns } from '../sql/database/renamed-columns.ts';
import { code } from '../sql/values/codes.ts';
import { checkedEffects, checkedSpend, checkedTables, rowSums, withSums } from './row-sums.ts';

const spendSums = withSums(checkedSpend);
const effectSums = withSums(checkedEffects);
const renames = renamedColumns
  .map(({ table, from, to }) => `ALTER TABLE ${table} RENAME COLUMN "${from}" TO ${to};`)
  .join('\n');

/**
 * The tables, one step a format; steps are only added, never changed. A later step renames some columns of the first: see
 * `renamedColumns`. Tables with a body are rowid tables on purpose:
 * WITHOUT ROWID keeps at most a quarter page of a row in place and would triple the file. Numbers of branches, snapshots
 * and blobs are never used again, because notes of where a state lies may outlive the rows they name.
 */
export const steps: readonly string[] = [
  `
  CREATE TABLE sessions(
    no INTEGER PRIMARY KEY AUTOINCREMENT,
    owner TEXT NOT NULL,                     -- '' for nobody's
    agent TEXT NOT NULL,
    id TEXT NOT NULL,                        -- chosen by the caller
    head INTEGER,                            -- snapshots.no, always a succeeded one
    tip INTEGER,                             -- the snapshot placed last; only what goes on from it goes on in place
    next_index INTEGER NOT NULL DEFAULT 0,
    title TEXT,
    metadata TEXT,
    forked_from TEXT,
    started_by_agent TEXT,
    started_by_session TEXT,
    started_by_snapshot TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL);
  CREATE UNIQUE INDEX sessions_id ON sessions(owner, agent, id);
  CREATE INDEX sessions_updated ON sessions(owner, agent, updated_at);
  CREATE INDEX sessions_started_by ON sessions(owner, started_by_agent, started_by_session)
    WHERE started_by_session IS NOT NULL;

  CREATE TABLE branches(                     -- a line of snapshots, each going on from the one before
    no INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER NOT NULL,                -- whose snapshots lie on it; the session may be gone
    parent INTEGER,                          -- the branch it left
    fork INTEGER,                            -- the parent's rows up to here belong to it; NULL: none by themselves
    fork_view INTEGER,                       -- under this view of them
    fork_snapshot INTEGER);                  -- the last snapshot on the parent that is on its path
  CREATE INDEX branches_parent ON branches(parent) WHERE parent IS NOT NULL;

  CREATE TABLE views(                        -- a history that was trimmed or rewritten
    no INTEGER PRIMARY KEY AUTOINCREMENT,
    branch INTEGER NOT NULL,
    own_from INTEGER NOT NULL,               -- the branch's rows from here on belong to it
    base TEXT NOT NULL,                      -- and before them [[branch, from, to], ...]; branch 0 is its own
    common INTEGER NOT NULL);                -- how many messages at its beginning are those of the path before
  CREATE INDEX views_branch ON views(branch);
  CREATE TABLE view_refs(                    -- which view holds rows of which other branch
    branch INTEGER NOT NULL, view INTEGER NOT NULL,
    of INTEGER NOT NULL,                     -- the view's own branch
    PRIMARY KEY(branch, view)) WITHOUT ROWID;

  CREATE TABLE messages(
    id INTEGER PRIMARY KEY,                  -- branch * 2^22 + row
    body TEXT NOT NULL);

  CREATE TABLE blobs(                        -- custom states, lists of artifacts, large parts of artifacts
    no INTEGER PRIMARY KEY AUTOINCREMENT,
    hash BLOB,                               -- content address; a patch has none
    prev INTEGER,                            -- the body is a patch to this one
    body TEXT NOT NULL);
  CREATE UNIQUE INDEX blobs_hash ON blobs(hash) WHERE hash IS NOT NULL;
  CREATE INDEX blobs_prev ON blobs(prev) WHERE prev IS NOT NULL;
  CREATE TABLE blob_parts(                   -- which list of artifacts names which large part
    part INTEGER NOT NULL, list INTEGER NOT NULL, PRIMARY KEY(part, list)) WITHOUT ROWID;

  CREATE TABLE snapshots(
    no INTEGER PRIMARY KEY AUTOINCREMENT,
    id BLOB UNIQUE,                          -- NULL: the checkpoint of a run
    session INTEGER NOT NULL,
    parent INTEGER,
    idx INTEGER,                             -- NULL: not listed
    turn INTEGER NOT NULL,
    event INTEGER NOT NULL,
    status INTEGER NOT NULL,
    finish INTEGER,
    branch INTEGER,                          -- the messages: rows of this branch
    upto INTEGER NOT NULL,                   -- up to here
    view INTEGER,                            -- under this view; NULL: the parent branch's before them
    length INTEGER NOT NULL,
    custom INTEGER,
    artifacts INTEGER,
    state_hash BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    usage TEXT,
    totals TEXT,
    error TEXT,
    label TEXT,
    ttl INTEGER,                             -- of a pending one without a run
    partial INTEGER);                        -- of an aborted one: the attempt that may still add what it had reached
  CREATE INDEX snapshots_session ON snapshots(session, idx);
  CREATE INDEX snapshots_custom ON snapshots(custom) WHERE custom IS NOT NULL;
  CREATE INDEX snapshots_artifacts ON snapshots(artifacts) WHERE artifacts IS NOT NULL;

  CREATE TABLE runs(                         -- while it is open; one a session
    session INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,                 -- the reserved snapshot id
    attempt INTEGER NOT NULL,
    mode INTEGER NOT NULL,
    worker TEXT NOT NULL,
    request TEXT NOT NULL,
    turn INTEGER NOT NULL,
    start INTEGER,                           -- snapshots.no it was claimed from
    base INTEGER,                            -- the last committed one it goes on from
    own INTEGER,                             -- the listed pending snapshot of a detached run
    checkpoint INTEGER,                      -- the state it had reached
    inputs_done INTEGER NOT NULL DEFAULT 0,
    mid_turn INTEGER NOT NULL DEFAULT 0,
    stopping INTEGER NOT NULL DEFAULT 0,
    ttl INTEGER NOT NULL,
    heartbeat INTEGER NOT NULL,
    created_at INTEGER NOT NULL);
  CREATE TABLE journal(                      -- of a run: its events, one row a flush, its steps, its end
    run BLOB NOT NULL, attempt INTEGER NOT NULL, seq INTEGER NOT NULL, last INTEGER NOT NULL,
    session INTEGER NOT NULL,
    ended_at INTEGER,                        -- of its end, which is kept with the events for a while
    body TEXT NOT NULL);
  CREATE UNIQUE INDEX journal_run ON journal(run, attempt, seq);

  CREATE TABLE trash(                        -- what may have become unreachable and is still to be looked at
    kind INTEGER NOT NULL, no INTEGER NOT NULL, PRIMARY KEY(kind, no)) WITHOUT ROWID;
  `,
  // Encrypted values are bound to their places, which older versions cannot read. The file says whose it is: "WYMK".
  'PRAGMA application_id = 1465470283;',
  // Crashes of the workers of a run, and the dead-letter queue.
  `
  ALTER TABLE runs ADD COLUMN crashes INTEGER NOT NULL DEFAULT 0; -- workers that died since its last progress
  ALTER TABLE runs ADD COLUMN crashed TEXT;  -- of each, its attempt and its last heartbeat: 1:1763200000000,2:…
  CREATE TABLE dead_runs(                    -- runs that were given up
    run BLOB PRIMARY KEY,                    -- snapshots.id; the snapshot may be gone
    session INTEGER NOT NULL,
    since INTEGER NOT NULL,
    inputs_done INTEGER NOT NULL,
    mode INTEGER NOT NULL,
    request TEXT NOT NULL) WITHOUT ROWID;
  `,
  // Idempotency keys.
  `
  CREATE TABLE requests(                     -- idempotency keys, for a day after the end of their run
    key BLOB PRIMARY KEY,                    -- hash of owner, agent and request id
    run BLOB NOT NULL,                       -- the reserved snapshot id
    session INTEGER NOT NULL,
    digest BLOB NOT NULL,                    -- of what was asked for
    at INTEGER NOT NULL,                     -- when it was claimed, or ended with a receipt
    receipt TEXT);                           -- what the run came to
  CREATE INDEX requests_session ON requests(session);
  CREATE INDEX requests_at ON requests(at);
  `,
  // A checksum for each row whose columns are not covered by the hash of a state.
  rowSums,
  // Names that say what a column holds. SQLite renames them in the indexes and triggers as well.
  renames,
  // Full-text search. The words are made by the store, so every character above ASCII is part of one.
  `
  CREATE TABLE search(                       -- the different words in the messages of a session; made when it is searched
    session INTEGER PRIMARY KEY,
    head INTEGER NOT NULL,                   -- snapshots.row_id of the state that they are of
    words TEXT NOT NULL);
  CREATE INDEX search_head ON search(head);
  CREATE VIRTUAL TABLE search_words USING fts5(
    words, content='search', content_rowid='session', columnsize=0, detail=none, tokenize='ascii');
  INSERT INTO search_words(search_words, rank) VALUES('secure-delete', 1);
  CREATE TRIGGER search_added AFTER INSERT ON search BEGIN
    INSERT INTO search_words(rowid, words) VALUES(NEW.session, NEW.words);
  END;
  CREATE TRIGGER search_changed AFTER UPDATE ON search BEGIN
    INSERT INTO search_words(search_words, rowid, words) VALUES('delete', OLD.session, OLD.words);
    INSERT INTO search_words(rowid, words) VALUES(NEW.session, NEW.words);
  END;
  CREATE TRIGGER search_removed AFTER DELETE ON search BEGIN
    INSERT INTO search_words(search_words, rowid, words) VALUES('delete', OLD.session, OLD.words);
  END;
  CREATE TRIGGER search_outdated AFTER DELETE ON snapshots
    WHEN EXISTS (SELECT 1 FROM search WHERE head = OLD.row_id) BEGIN
    DELETE FROM search WHERE head = OLD.row_id;
  END;
  `,
  // Spend.
  `
  CREATE TABLE spend(                        -- counters; one row is added to by each turn of a session on a day
    owner TEXT NOT NULL, agent TEXT NOT NULL, session TEXT NOT NULL,
    by_agent TEXT NOT NULL,                  -- the agent that called the model: the session's, or a sub-agent
    model TEXT NOT NULL,
    currency TEXT NOT NULL,                  -- '' for no price
    day INTEGER NOT NULL,                    -- since 1970
    calls INTEGER NOT NULL,
    input INTEGER NOT NULL, output INTEGER NOT NULL, total INTEGER NOT NULL, reasoning INTEGER NOT NULL,
    cache_read INTEGER NOT NULL, cache_write INTEGER NOT NULL,
    micros INTEGER NOT NULL,                 -- millionths of a unit of the currency
    PRIMARY KEY(owner, agent, session, by_agent, model, currency, day)) WITHOUT ROWID;
  `,
  // Inboxes of runs are in the journal, and an index finds the sessions that wait for an answer.
  `CREATE INDEX snapshots_interrupted ON snapshots(session) WHERE finish = ${code.interrupted};`,
  // Data of artifacts as bytes, instead of base64.
  'ALTER TABLE blobs ADD COLUMN bytes BLOB;',
  // A checksum for each row of what was spent.
  spendSums,
  // Files in pieces: in `blob_parts`, a negative list is a run that holds a part. An older version would not see that a list of artifacts
  // names a file.
  'PRAGMA application_id = 1465470283;',
  // Budgets reserve what a model call may cost.
  `
  CREATE TABLE reservations(                 -- of calls that have not ended, or whose process died
    owner TEXT NOT NULL, agent TEXT NOT NULL, session TEXT NOT NULL,
    id TEXT NOT NULL,
    holder TEXT NOT NULL,                    -- the run of the session
    currency TEXT NOT NULL,                  -- '' for tokens
    amount INTEGER NOT NULL,
    is_bound INTEGER NOT NULL,               -- 1: the call cannot use more; 0: a guess
    day INTEGER NOT NULL,                    -- since 1970
    expires_at INTEGER NOT NULL,             -- from then on the call is lost
    PRIMARY KEY(owner, agent, session, id, currency)) WITHOUT ROWID;
  `,
  // Memory across sessions. What came from a session goes with it, and the later versions of the same entries.
  `
  CREATE TABLE memory(                       -- versions of entries
    row_id INTEGER PRIMARY KEY AUTOINCREMENT,
    scope TEXT NOT NULL,                     -- the memory, and whose entries they are
    id TEXT NOT NULL,
    entry TEXT NOT NULL,
    owner TEXT NOT NULL,                     -- who wrote it; '' for no owner
    session INTEGER,                         -- its source; NULL: added outside of a turn
    snapshot BLOB,                           -- snapshots.id; the snapshot may be gone
    message INTEGER,                         -- the index of a message of its session
    seq INTEGER,                             -- its number in the lane of the session
    created_at INTEGER NOT NULL,
    body TEXT);                              -- NULL: the entry is forgotten
  CREATE INDEX memory_scope ON memory(scope);
  CREATE INDEX memory_entry ON memory(entry);
  CREATE INDEX memory_owner ON memory(owner);
  CREATE INDEX memory_session ON memory(session, seq) WHERE session IS NOT NULL;
  CREATE TABLE memory_sessions(              -- sessions that may have versions
    session INTEGER PRIMARY KEY,
    family TEXT NOT NULL,                    -- of a session and its forks
    lane TEXT NOT NULL);                     -- names the session on paths
  CREATE INDEX memory_family ON memory_sessions(family);
  CREATE TABLE memory_notes(                 -- what a snapshot, or the checkpoint of a run, records
    snapshot BLOB PRIMARY KEY,               -- snapshots.id, or that of a run
    session INTEGER NOT NULL,
    path TEXT NOT NULL,                      -- the visible versions: [[lane, from, to], ...]
    given TEXT NOT NULL,                     -- ids of the versions in the prompt
    pending TEXT,                            -- versions that are written when the turn ends
    created_at INTEGER NOT NULL);
  CREATE INDEX memory_notes_session ON memory_notes(session);
  CREATE TRIGGER memory_source_removed AFTER DELETE ON sessions
    WHEN EXISTS (SELECT 1 FROM memory_notes WHERE session = OLD.row_id)
      OR EXISTS (SELECT 1 FROM memory_sessions WHERE session = OLD.row_id) BEGIN
    DELETE FROM memory WHERE row_id IN (
      SELECT m.row_id FROM memory x JOIN memory m ON m.entry = x.entry AND m.row_id >= x.row_id
      WHERE x.session = OLD.row_id);
    DELETE FROM memory_notes WHERE session = OLD.row_id;
    DELETE FROM memory_sessions WHERE session = OLD.row_id;
  END;
  `,
  // Effects that can be undone.
  `
  CREATE TABLE effects(                      -- calls with an effect in another system; a fork has those of its source
    row_id INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER NOT NULL,
    key BLOB NOT NULL,                       -- the idempotency key of the call
    run BLOB NOT NULL,                       -- the reserved snapshot id of its run
    at INTEGER NOT NULL,                     -- when it began
    undone_at INTEGER,
    body TEXT NOT NULL);                     -- the tool, the input and, once it is known, the output
  CREATE UNIQUE INDEX effects_key ON effects(key, session);
  CREATE INDEX effects_session ON effects(session);
  `,
  // A checksum for each row of effects.
  effectSums,
];

/** The format since which rows have checksums. */
export const firstSumsFormat: number = steps.indexOf(rowSums) + 1;

/** The same tables for a new database. Columns are renamed before there are triggers: SQLite reads all of them again with each name. */
export const newSteps: readonly string[] = steps.toSpliced(
  steps.indexOf(rowSums),
  2,
  renames,
  checkedTables.map(withSums).join('\n'),
);

/** The same formats in a database whose connections have no functions for checksums. */
export const stepsWithoutSums: readonly string[] = steps.map((step) =>
  [rowSums, spendSums, effectSums].includes(step) ? '' : step,
);
