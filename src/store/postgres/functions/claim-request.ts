import { now } from '../dialect.ts';

/**
 * Accepts a run under idempotency keys, in the same step. Keys that are there already give NULL, and a transaction looks at
 * what has become of them; one that another transaction adds in the same moment ends this one with a conflict.
 */
export const claimRequest = `
CREATE FUNCTION @open_run_with_keys(
  _keys bytea[], _digests bytea[],
  _owner text, _agent text, _session text, _run bytea, _mode smallint, _worker text, _request text, _ttl bigint,
  _expects boolean, _head bytea, _byAgent text, _bySession text, _bySnapshot text, _from bytea)
RETURNS text LANGUAGE plpgsql SET enable_seqscan TO off AS $$
DECLARE
  claimed text;
BEGIN
  IF EXISTS (SELECT 1 FROM @requests q WHERE q.key = ANY(_keys)) THEN RETURN NULL; END IF;
  claimed := @open_run(_owner, _agent, _session, _run, _mode, _worker, _request, _ttl,
    _expects, _head, _byAgent, _bySession, _bySnapshot, _from);
  IF claimed IS NOT NULL THEN
    INSERT INTO @requests(key, run, session, digest, at)
    SELECT k.key, _run, r.session, k.digest, ${now}
    FROM unnest(_keys, _digests) k(key, digest) CROSS JOIN @runs r WHERE r.id = _run;
  END IF;
  RETURN claimed;
END $$;
`;
